// The log: one line for each request, whatever the request is, and nobody waits for its reader.
#include "serve/request_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/scratch_folder.h"

namespace cairn::serve::request_log_test {
namespace {

http::Request request_for(const std::string& path) {
  http::Request request;
  request.head.method_name = "GET";
  request.head.path = path;
  request.id = "the-id";
  request.address = "127.0.0.1";
  return request;
}

TEST(RequestLog, LinesStayLines) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("log");
  {
    const auto log = RequestLog::open(path).value();
    const http::WholeReply reply({}, "");
    log->add(request_for("/a\n{\"x\"\x1b\xff"), reply, {.status = 200, .bytes = 5, .seconds = 0.5});
    log->add(request_for("/" + std::string(5000, 'x')), reply, {.status = 404});
  }
  struct stat found = {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 077, 0u);
  const std::string text = test::contents_of(path);
  ASSERT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  const auto first = nlohmann::json::parse(text.substr(0, text.find('\n')));
  EXPECT_EQ(first["ms"], 500.0);
  EXPECT_EQ(first["bytes"], 5);
  EXPECT_EQ(first["id"], "the-id");
  EXPECT_TRUE(first["path"].get<std::string>().starts_with("/a\n{"));
  EXPECT_LT(text.size(), 1500u);
}

// A pipe that nobody reads fills up; then lines are lost, and counted.
TEST(RequestLog, NobodyWaitsForItsReader) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  const auto log = RequestLog::open(path).value();
  const http::WholeReply reply({}, "");
  for (int count = 0; count < 2000; ++count) log->add(request_for("/a"), reply, {.status = 200});
  std::string text;
  char bytes[65536];
  const auto drain = [&] {
    for (ssize_t size; (size = ::read(reader, bytes, sizeof(bytes))) > 0;) {
      text.append(bytes, size_t(size));
    }
  };
  drain();
  const auto written = std::count(text.begin(), text.end(), '\n');
  EXPECT_GT(written, 10);
  EXPECT_LT(written, 2000);
  text.clear();
  log->add(request_for("/b"), reply, {.status = 200});
  drain();
  EXPECT_EQ(nlohmann::json::parse(text)["lost_lines"], 2000 - written);
  ::close(reader);
}

TEST(RequestLog, MayBeNone) {
  const auto log = RequestLog::open("").value();
  log->add(request_for("/a"), http::WholeReply({}, ""), {});
  EXPECT_FALSE(RequestLog::open("/no/such/folder/log"));
}

}  // namespace
}  // namespace cairn::serve::request_log_test
