// What commands write, from outside: over which files they do not write, through what they do, what
// a signal or a full disk leaves, and failed writes to standard output.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/cli/run_program.h"
#include "tests/sanitized.h"

namespace cairn::cli::outputs_test {
namespace {

namespace fs = std::filesystem;

Finished shell(const std::string& script, const Environment& environment = {}) {
  Environment all = environment;
  all.emplace_back("P", CAIRN_PROGRAM);
  return run_command({"bash", "-c", script}, "", all);
}

class Outputs : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run_program({"synth", "--like", "llama", "--layers", "1", "--vocab", "300", "--type",
                           "F16", "-o", model()})
                  .exit_code,
              0);
    write_to(file("ids"), "1 2 3\n");
    std::string text;
    for (int i = 0; i < 300; ++i) text += "some words ";
    write_to(file("text"), text);
  }
  std::string file(const std::string& name) const { return folder_.file(name); }
  std::string model() const { return file("model.gguf"); }
  size_t file_count() const {
    return size_t(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }
  // That a command refuses to write over one of its inputs, and changes nothing.
  void expect_spared(std::vector<std::string> arguments, const std::string& input) const {
    const std::string before = contents_of(input);
    const size_t count = file_count();
    const Finished done = run_program(arguments);
    EXPECT_EQ(done.exit_code, 2) << arguments[0] << done.err;
    EXPECT_NE(done.err.find("expected another file than the input"), std::string::npos) << done.err;
    EXPECT_TRUE(contents_of(input) == before) << arguments[0] << " wrote over " << input;
    EXPECT_EQ(file_count(), count);
  }

  ScratchFolder folder_;
};

TEST_F(Outputs, NoCommandWritesOverItsInputs) {
  fs::create_hard_link(model(), file("other-name.gguf"));
  for (const std::string& input : {model(), file("other-name.gguf"), file("ids")}) {
    expect_spared({"logits", model(), "--tokens", file("ids"), "-o", input}, input);
  }
  for (const std::string& input : {model(), file("text")}) {
    expect_spared({"perplexity", model(), "-f", file("text"), "-c", "64", "--save-logits", input},
                  input);
  }
  ASSERT_EQ(run_program({"perplexity", model(), "-f", file("text"), "-c", "64", "--chunks", "1",
                         "--save-logits", file("base")})
                .exit_code,
            0);
  expect_spared({"perplexity", model(), "--kl", file("base"), "--save-logits", file("base")},
                file("base"));
  expect_spared({"quantize", model(), model(), "Q8_0"}, model());
  write_to(file("adapter"), "an adapter");
  expect_spared({"logits", model(), "--tokens", file("ids"), "--lora", file("adapter"), "-o",
                 file("adapter")},
                file("adapter"));
  write_to(file("imatrix"), "importances");
  expect_spared({"quantize", model(), file("imatrix"), "Q8_0", "--imatrix", file("imatrix")},
                file("imatrix"));
}

TEST_F(Outputs, ConvertSparesTheFolderItReads) {
  const std::string folder = file("folder");
  fs::copy(CAIRN_FIXTURES "/folders/arcee", folder, fs::copy_options::recursive);
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string kind = entry.path().extension().string();
    if (kind != ".json" && kind != ".safetensors") continue;
    expect_spared({"convert", folder, "-o", entry.path().string()}, entry.path().string());
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(run_program({"convert", folder, "-o", folder + "/model.gguf"}).exit_code, 0);
  }
}

TEST_F(Outputs, AFolderThatIsNotThereIsNoticedFirst) {
  const std::string out = file("none") + "/out";
  // Were the model read first, its absence would be the error.
  const std::string mistake = "expected a folder for it, found none at " + file("none");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"quantize", model(), out, "Q8_0"},
        {"logits", model(), "--tokens", file("ids"), "-o", out},
        {"perplexity", model(), "-f", file("no text"), "--save-logits", out},
        {"convert", file("no folder"), "-o", out},
        {"synth", "--like", "llama", "-o", out}}) {
    const Finished done = run_program(arguments);
    EXPECT_EQ(done.exit_code, 1) << arguments[0];
    EXPECT_NE(done.err.find(mistake), std::string::npos) << arguments[0] << done.err;
  }
  const Finished folder = run_program({"quantize", model(), folder_.path(), "Q8_0"});
  EXPECT_EQ(folder.exit_code, 2);
  EXPECT_NE(folder.err.find("expected a file to write, found a folder"), std::string::npos);
}

TEST_F(Outputs, DevicesAndPipesAreWrittenThroughAndLinksStay) {
  ASSERT_EQ(mkfifo(file("fifo").c_str(), 0600), 0);
  const Finished piped = shell("cat " + file("fifo") + " > " + file("copy") + " & $P quantize " +
                               model() + " " + file("fifo") + " Q8_0 && wait");
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  struct stat info = {};
  ASSERT_EQ(lstat(file("fifo").c_str(), &info), 0);
  EXPECT_TRUE(S_ISFIFO(info.st_mode));
  ASSERT_EQ(run_program({"quantize", model(), file("usual"), "Q8_0"}).exit_code, 0);
  const std::string usual = contents_of(file("usual"));
  EXPECT_TRUE(contents_of(file("copy")) == usual);
  // A dash, what the shell makes of >( ), and a link to a file elsewhere.
  EXPECT_TRUE(run_program({"quantize", model(), "-", "Q8_0"}).out == usual);
  shell("$P quantize " + model() + " >(cat > " + file("substituted") + "; touch " + file("end") +
        ") Q8_0; while [ ! -e " + file("end") + " ]; do sleep 0.05; done");
  EXPECT_TRUE(contents_of(file("substituted")) == usual);
  ASSERT_EQ(symlink("target", file("link").c_str()), 0);
  ASSERT_EQ(run_program({"quantize", model(), file("link"), "Q8_0"}).exit_code, 0);
  ASSERT_EQ(lstat(file("link").c_str(), &info), 0);
  EXPECT_TRUE(S_ISLNK(info.st_mode));
  EXPECT_TRUE(contents_of(file("target")) == usual);
  EXPECT_EQ(run_program({"synth", "--like", "llama", "-o", "/dev/null"}).exit_code, 0);
  const Finished full =
      run_program({"logits", model(), "--tokens", file("ids"), "-o", "/dev/full"});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_EQ(full.err, "cairn: /dev/full: cannot write: No space left on device\n");
}

bool has_partial(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().find(".partial.") != std::string::npos) return true;
  }
  return false;
}

// Starts a command that takes long, waits for its unfinished file, or what else shows that it is at
// work, does `then`, and waits for its end. The exit code; nothing may be left.
class Ended {
 public:
  template <class Then>
  Ended(const std::vector<std::string>& arguments, const fs::path& folder, const Then& then,
        bool (*is_at_work)(const fs::path& folder) = has_partial) {
    const pid_t child = fork();
    if (child == 0) {
      dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
      exec_program(arguments, {});
    }
    for (int wait = 0; wait < 6000 && !is_at_work(folder); ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    was_seen = is_at_work(folder);
    then(child);
    int status = 0;
    waitpid(child, &status, 0);
    exit_code = exit_code_of(status);
    is_left = has_partial(folder);
  }

  bool was_seen = false, is_left = false;
  int exit_code = -1;
};

TEST_F(Outputs, SignalsLeaveNoUnfinishedFiles) {
  const std::vector<std::string> big = {"synth",   "--like", "llama",    "--layers", "8",
                                        "--width", "2048",   "--type",   "Q8_0",     "-t",
                                        "1",       "-o",     file("big")};
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const Ended ended(big, folder_.path(), [&](pid_t child) { kill(child, signal); });
    EXPECT_TRUE(ended.was_seen);
    EXPECT_FALSE(ended.is_left) << signal;
    EXPECT_EQ(ended.exit_code, 128 + signal);
  }
  std::string ids = "1";
  for (int i = 0; i < 60; ++i) ids += " 2";
  std::string many;
  for (int i = 0; i < 20000; ++i) many += ids + "\n";
  write_to(file("many ids"), many);
  const Ended logits({"logits", model(), "--tokens", file("many ids"), "-o", file("rows")},
                     folder_.path(), [](pid_t child) { kill(child, SIGTERM); });
  EXPECT_TRUE(logits.was_seen);
  EXPECT_FALSE(logits.is_left);
  EXPECT_EQ(logits.exit_code, 128 + SIGTERM);
  EXPECT_FALSE(fs::exists(file("big")) || fs::exists(file("rows")));
}

// Neither while a model is written nor while it is measured.
TEST_F(Outputs, SignalsLeaveNoModelsOfBenchMemory) {
  const std::string folder = file("models");
  fs::create_directory(folder);
  const auto is_measured = [](const fs::path& models) {
    std::error_code error;
    return !has_partial(models) && !fs::is_empty(models) &&
           fs::file_size(*fs::directory_iterator(models), error) > 0;
  };
  const struct {
    const char* preset;
    bool (*is_at_work)(const fs::path& folder);
  } phases[] = {{"llama-1b", has_partial}, {"mamba-130m", is_measured}};
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    for (const auto& phase : phases) {
      const Ended ended(
          {"bench", "memory", "--preset", phase.preset, "--folder", folder}, folder,
          [&](pid_t child) { kill(child, signal); }, phase.is_at_work);
      EXPECT_TRUE(ended.was_seen) << phase.preset;
      EXPECT_EQ(ended.exit_code, 128 + signal) << phase.preset;
      EXPECT_TRUE(fs::is_empty(folder)) << phase.preset << ", signal " << signal;
    }
  }
}

// The model loses its end while its weights are read.
TEST_F(Outputs, ASourceThatShrinksLeavesNoUnfinishedFile) {
  ASSERT_EQ(run_program({"synth", "--like", "llama", "--layers", "2", "--width", "2048", "--type",
                         "F16", "-o", file("source")})
                .exit_code,
            0);
  const Ended ended({"quantize", file("source"), file("out"), "Q6_K", "-t", "1"}, folder_.path(),
                    [&](pid_t) { fs::resize_file(file("source"), 1 << 20); });
  EXPECT_TRUE(ended.was_seen);
  EXPECT_FALSE(ended.is_left);
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_FALSE(fs::exists(file("out")));
}

TEST_F(Outputs, ALimitOfFileSizesIsAnError) {
  const size_t count = file_count();
  const Finished done = shell("ulimit -f 16; $P synth --like llama -o " + file("out"));
  EXPECT_EQ(done.exit_code, 1) << done.err;
  EXPECT_EQ(done.err, "cairn: " + file("out") + ": cannot write: File too large\n");
  EXPECT_EQ(file_count(), count);
}

TEST_F(Outputs, FailedWritesToStandardOutputAreErrors) {
  write_to(file("short"), "some words");
  const std::string commands[] = {"tokenize " + model() + " " + file("short"),
                                  "template " + file("short"),
                                  "inspect " + model(),
                                  "run -p Hello",
                                  "run --help",
                                  "--version",
                                  "perplexity " + model() + " -c 64 -f " + file("text"),
                                  "verify --programs 1",
                                  ""};
  for (const std::string& command : commands) {
    for (const char* output : {"> /dev/full", ">&-"}) {
      const Finished done = shell("$P " + command + " " + output);
      EXPECT_EQ(done.exit_code, 1) << command << output;
      EXPECT_NE(done.err.find("cairn: standard output: cannot write: "), std::string::npos)
          << command << output << done.err;
    }
  }
}

TEST_F(Outputs, ModelsHaveTheUsersPermissionsAndConversationsNone) {
  const auto mode_of = [&](const std::string& name) {
    struct stat info = {};
    EXPECT_EQ(stat(file(name).c_str(), &info), 0) << name;
    return info.st_mode & 0777;
  };
  shell("umask 027; $P quantize " + model() + " " + file("out") + " Q8_0");
  EXPECT_EQ(mode_of("out"), 0640u);
  write_to(file("old"), "{}");
  ASSERT_EQ(chmod(file("old").c_str(), 0666), 0);
  const std::string lines = "Hello\\n/save " + file("new") + "\\n/save! " + file("old") + "\\n";
  shell("umask 0; printf '" + lines + "' | $P run --chat --sandbox-path " +
        folder_.path().string());
  EXPECT_EQ(mode_of("new"), 0600u);
  EXPECT_EQ(mode_of("old"), 0600u);
}

TEST_F(Outputs, AChatAsksBeforeItWritesOverFiles) {
  write_to(file("letter"), "dear");
  const std::string chat = file("chat.json"), letter = file("letter");
  const Finished done =
      run_program({"run", model(), "--chat", "-n", "4", "--raw", "--sandbox-path", folder_.path()},
                  "Hello\n/save " + chat + "\n/save " + chat + "\n/save " + letter + "\n/save! " +
                      letter + "\n/save " + letter + "\n/save! " + model() + "\n");
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const std::string expected[] = {
      "2 messages written to " + chat + "\n2 messages written to " + chat + "\n",
      "cairn: " + letter +
          ": expected a new file or one of this conversation, found another; /save! writes over "
          "it\n2 messages written to " +
          letter + "\n2 messages written to " + letter + "\n",
      "cairn: " + model() + ": expected another file than the input"};
  for (const std::string& part : expected) {
    EXPECT_NE(done.err.find(part), std::string::npos) << part << "\nin\n" << done.err;
  }
  // What was loaded is the conversation's own.
  const Finished again =
      run_program({"run", model(), "--chat", "-n", "4", "--raw", "--sandbox-path", folder_.path()},
                  "/save " + chat + "\n/load " + chat + "\nHello\n/save " + chat + "\n");
  EXPECT_NE(again.err.find("found another"), std::string::npos) << again.err;
  EXPECT_NE(again.err.find("4 messages written to " + chat), std::string::npos) << again.err;
}

}  // namespace
}  // namespace cairn::cli::outputs_test
