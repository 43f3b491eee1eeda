// Outputs: files that appear whole or not at all, what is written through, what is refused, and
// what a signal leaves.
#include "base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string_view>
#include <thread>
#include <utility>

#include "base/process.h"
#include "tests/scratch_folder.h"

namespace cairn::output_file_test {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class Output : public testing::Test {
 protected:
  std::string path(const char* name) const { return folder_.file(name); }
  size_t file_count() const {
    return size_t(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }
  static mode_t mode_of(const std::string& path) {
    struct stat status = {};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    return status.st_mode;
  }
  void expect_refused(const std::string& path, const OutputOptions& options,
                      const std::string& part) const {
    const size_t before = file_count();
    for (const Status& status : {check_output(path, options), write_file(path, {}, options)}) {
      ASSERT_FALSE(status) << path;
      EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message;
    }
    EXPECT_EQ(file_count(), before);
  }

  test::ScratchFolder folder_;
};

TEST_F(Output, TheOldFileStaysUntilCommit) {
  ASSERT_TRUE(write_file(path("a"), bytes_of("old")));
  Result<OutputFile> file = OutputFile::open(path("a"));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE(file->append(bytes_of("new ")));
  ASSERT_TRUE(file->append(bytes_of("world")));
  EXPECT_EQ(file->appended(), 9u);
  EXPECT_EQ(test::contents_of(path("a")), "old");
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(test::contents_of(path("a")), "new world");
  EXPECT_EQ(file_count(), 1u) << "nothing is left aside";
}

TEST_F(Output, WhatIsNotCommittedLeavesNothing) {
  {
    Result<OutputFile> file = OutputFile::open(path("a"));
    ASSERT_TRUE(file);
    OutputFile moved = std::move(*file);
    ASSERT_TRUE(moved.append(bytes_of("half")));
    EXPECT_EQ(file_count(), 1u);
  }
  EXPECT_EQ(file_count(), 0u);
}

TEST_F(Output, RefusesWhatItMustNotWrite) {
  expect_refused("", {}, "expected a path, found none");
  expect_refused(path("none/a"), {}, "expected a folder for it, found none at");
  expect_refused(folder_.path(), {}, "found a folder");
  test::write_to(path("in"), "input");
  ASSERT_EQ(::link(path("in").c_str(), path("other name").c_str()), 0);
  ASSERT_EQ(::symlink("in", path("link").c_str()), 0);
  const FileIdentity inputs[] = {{1, 2}, identity_of(path("in")).value()};
  for (const char* name : {"in", "other name", "link"}) {
    expect_refused(path(name), {.inputs = inputs}, "expected another file than the input");
  }
  expect_refused(path("link"), {.follows_links = false}, "found a symbolic link");
  expect_refused(path("in") + "/b", {}, "Not a directory");
  EXPECT_EQ(test::contents_of(path("in")), "input");
  ASSERT_TRUE(write_file(path("out"), bytes_of("x"), {.inputs = inputs}));
  ASSERT_TRUE(write_file(path("out"), bytes_of("x"), {.follows_links = false}));
}

TEST_F(Output, LinksStayAndTheirFilesAreReplaced) {
  ASSERT_EQ(::mkdir(path("folder").c_str(), 0700), 0);
  ASSERT_EQ(::symlink("folder/file", path("link").c_str()), 0);
  ASSERT_EQ(::symlink(path("link").c_str(), path("link to link").c_str()), 0);
  for (const char* text : {"made", "replaced"}) {
    ASSERT_TRUE(write_file(path("link to link"), bytes_of(text)));
    EXPECT_EQ(test::contents_of(path("folder/file")), text);
    EXPECT_TRUE(S_ISLNK(mode_of(path("link"))) && S_ISLNK(mode_of(path("link to link"))));
  }
  EXPECT_EQ(file_count(), 3u);
  ASSERT_EQ(::symlink("circle", path("circle").c_str()), 0);
  EXPECT_FALSE(write_file(path("circle"), bytes_of("x")));
}

TEST_F(Output, FifosAndDevicesAreWrittenThrough) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = test::contents_of(path("fifo")); });
  EXPECT_TRUE(write_file(path("fifo"), bytes_of("through")));
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(S_ISFIFO(mode_of(path("fifo"))));
  ASSERT_EQ(::symlink("/dev/null", path("nothing").c_str()), 0);
  EXPECT_TRUE(write_file(path("nothing"), bytes_of("x")));
  EXPECT_TRUE(S_ISCHR(mode_of("/dev/null")) && S_ISLNK(mode_of(path("nothing"))));
  const Status full = write_file("/dev/full", bytes_of("x"));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message, "/dev/full: cannot write: No space left on device");
  EXPECT_EQ(file_count(), 2u);
}

// What a shell has opened has names in /dev/fd, which lead to a file that must not be replaced.
TEST_F(Output, OpenFilesAreWrittenThrough) {
  test::write_to(path("log"), "first, ");
  const int log = ::open(path("log").c_str(), O_WRONLY | O_APPEND);
  const FileIdentity before = identity_of(path("log")).value();
  EXPECT_TRUE(write_file("/dev/fd/" + std::to_string(log), bytes_of("second")));
  ::close(log);
  EXPECT_EQ(test::contents_of(path("log")), "first, second");
  EXPECT_EQ(identity_of(path("log")), before);
}

TEST_F(Output, ADashIsStandardOutput) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open(path("out").c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
    const FileIdentity inputs[] = {identity_of(path("out")).value()};
    const bool is_refused = !check_output("-", {.inputs = inputs});
    ::_exit(is_refused && write_file("-", bytes_of("text")) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(test::contents_of(path("out")), "text");
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(Output, PermissionsStayUnlessTheyArePrivate) {
  ASSERT_TRUE(write_file(path("new"), {}));
  EXPECT_EQ(mode_of(path("new")) & 0777, 0666 & ~shared_file_mask());
  ASSERT_EQ(::chmod(path("new").c_str(), 0640), 0);
  ASSERT_TRUE(write_file(path("new"), {}));
  EXPECT_EQ(mode_of(path("new")) & 0777, 0640u);
  for (const char* name : {"new", "private"}) {
    ASSERT_TRUE(write_file(path(name), {}, {.is_private = true}));
    EXPECT_EQ(mode_of(path(name)) & 0777, 0600u);
  }
}

// A child that writes and then waits to be ended; how it ended, as waitpid() has it.
int status_of_ended(const std::string& path, int signal) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    install_output_guard();
    Result<OutputFile> file = OutputFile::open(path);
    if (!file || !file->append(bytes_of("half"))) ::_exit(1);
    (void)!::write(ready[1], "r", 1);
    for (;;) ::pause();
  }
  ::close(ready[1]);
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "the child has opened its file";
  ::close(ready[0]);
  EXPECT_EQ(::kill(child, signal), 0);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST_F(Output, SignalsThatEndTheProgramRemoveWhatIsUnfinished) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) {
    const int status = status_of_ended(path("a"), signal);
    EXPECT_TRUE(WIFSIGNALED(status)) << signal;
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_EQ(file_count(), 0u) << signal;
  }
  EXPECT_EQ(WTERMSIG(status_of_ended(path("a"), SIGKILL)), SIGKILL);
  EXPECT_EQ(file_count(), 1u) << "so that this test can fail";
}

TEST_F(Output, TemporaryFilesGoWithTheirObject) {
  {
    Result<TemporaryFile> made = TemporaryFile::create(folder_.path(), "model", ".gguf");
    ASSERT_TRUE(made) << made.error().message;
    const TemporaryFile file = std::move(*made);
    const std::string name = fs::path(file.path()).filename();
    EXPECT_TRUE(name.starts_with("model-") && name.ends_with(".gguf")) << name;
    EXPECT_EQ(mode_of(file.path()) & 0777, 0600u);
    ASSERT_TRUE(write_file(file.path(), bytes_of("whole")));
    EXPECT_EQ(file_count(), 1u);
  }
  EXPECT_EQ(file_count(), 0u);
  const Result<TemporaryFile> none = TemporaryFile::create(path("none"), "model", ".gguf");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::not_found);
  EXPECT_NE(none.error().message.find(path("none")), std::string::npos) << none.error().message;
}

// Also those that have been written whole under their name.
TEST_F(Output, ASignalRemovesTemporaryFiles) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const pid_t child = ::fork();
    if (child == 0) {
      install_output_guard();
      Result<TemporaryFile> file = TemporaryFile::create(folder_.path(), "model", ".gguf");
      if (!file || !write_file(file->path(), bytes_of("whole"))) ::_exit(1);
      ::raise(signal);
      ::_exit(2);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << signal << ": exit code " << WEXITSTATUS(status);
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_EQ(file_count(), 0u) << signal;
  }
}

TEST_F(Output, TooManyUnfinishedFilesAreAnError) {
  std::vector<OutputFile> files;
  Error error{ErrorCode::io, ""};
  for (int i = 0; i < 17; ++i) {
    Result<OutputFile> file = OutputFile::open(path("a"));
    if (file) {
      files.push_back(std::move(*file));
    } else {
      error = file.error();
    }
  }
  EXPECT_EQ(files.size(), 16u);
  EXPECT_EQ(error.code, ErrorCode::no_room) << error.message;
  files.clear();
  EXPECT_EQ(file_count(), 0u);
  EXPECT_TRUE(OutputFile::open(path("a")));
}

}  // namespace
}  // namespace cairn::output_file_test
