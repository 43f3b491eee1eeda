// One file over ways that fail, lie and stall; killed in the midst and gone on with.
#include "hub/download.h"

#include <gtest/gtest.h>

#include "tests/hub/hub_server.h"

namespace cairn::hub::download_test {
namespace {

using test::contents_of;
using test::ScratchFolder;

constexpr size_t kBytes = 200'000;
constexpr uint64_t kChunk = 40'000;

class DownloadTest : public testing::Test {
 protected:
  DownloadTest() : bytes_(model_bytes(kBytes)), path_(folder_.file("out/a.gguf")) {
    put(folder_.path(), "tiny/a.gguf", bytes_);
    server_ = std::make_unique<HubServer>(folder_.path());
    web_.patience = {.failures_max = 4,
                     .wait_first = std::chrono::milliseconds(5),
                     .wait_max = std::chrono::milliseconds(20)};
    web_.transfer.stall_max = std::chrono::seconds(1);
    options_.chunk_bytes = kChunk;
    options_.wants_gguf = true;
  }

  // Of a repository with this behaviour, with the digest that the hub declares.
  Result<Downloaded> fetch(const std::string& behaviour, bool is_declared = true) {
    Result<std::unique_ptr<Web>> web = Web::make(web_);
    if (!web) return web.error();
    RemoteFile file{.name = "a.gguf",
                    .url = server_->url() + "/acme/" + behaviour + "-tiny/resolve/main/a.gguf"};
    if (is_declared) {
      file.bytes = kBytes;
      file.sha256 = hex_digest(bytes_);
    }
    const auto explain = [](const Reply& reply) {
      return fail(ErrorCode::io, "refused with {}", reply.head.status);
    };
    return download(**web, file, {}, path_, options_, explain);
  }
  // The message, and that nothing has the name.
  std::string error_of(const std::string& behaviour, bool is_declared = true) {
    const Result<Downloaded> done = fetch(behaviour, is_declared);
    EXPECT_FALSE(std::filesystem::exists(path_)) << behaviour;
    return done ? "it was fetched" : done.error().message;
  }
  void expect_whole(const Result<Downloaded>& done) {
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(contents_of(path_), bytes_);
    EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
    EXPECT_FALSE(std::filesystem::exists(path_ + ".partial.chunks"));
  }

  ScratchFolder folder_;
  std::string bytes_, path_;
  std::unique_ptr<HubServer> server_;
  WebOptions web_;
  DownloadOptions options_;
};

TEST_F(DownloadTest, InRangesThatAreEachAskedForOnce) {
  uint64_t told = 0, total = 0;
  options_.on_progress = [&](uint64_t done, uint64_t all) { told = done, total = all; };
  Result<Downloaded> done = fetch("usual");
  expect_whole(done);
  EXPECT_EQ(done->sha256, hex_digest(bytes_));
  EXPECT_EQ(done->bytes, kBytes);
  EXPECT_EQ(told, kBytes);
  EXPECT_EQ(total, kBytes);
  for (const char* range : {"bytes=0-39999", "bytes=40000-79999", "bytes=80000-119999",
                            "bytes=120000-159999", "bytes=160000-199999"}) {
    EXPECT_EQ(count_of(server_->log(), range), 1u) << range;
  }
}

TEST_F(DownloadTest, SeveralAtATimeOverASlowWay) {
  options_.connections_max = 5;
  expect_whole(fetch("slow"));
  // All have begun before one has ended.
  const std::string log = server_->log();
  const std::string begun = log.substr(0, log.find("\"ended\""));
  EXPECT_EQ(count_of(begun, "\"storage\""), 1u + 5u) << log;
}

TEST_F(DownloadTest, WhatIsCutOffGoesOnFromItsLastByte) {
  options_.connections_max = 1;
  expect_whole(fetch("cut"));
  EXPECT_EQ(count_of(server_->log(), "bytes=30000-39999"), 1u) << server_->log();
}

TEST_F(DownloadTest, ServersThatAskToComeLaterAreAskedLater) {
  expect_whole(fetch("many"));
}

// Each connection gives half of what is left and then nothing.
TEST_F(DownloadTest, StalledConnectionsAreGivenUp) {
  options_.connections_max = 1;
  put(folder_.path(), "tiny/a.gguf", bytes_ = model_bytes(8));
  const auto begin = std::chrono::steady_clock::now();
  expect_whole(fetch("stall", false));
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  for (const char* range : {"bytes=0-7", "bytes=4-7", "bytes=6-7", "bytes=7-7"}) {
    EXPECT_EQ(count_of(server_->log(), range), 1u) << range;
  }
}

TEST_F(DownloadTest, SignedAddressesThatHaveExpiredAreAskedForAnew) {
  options_.connections_max = 2;
  expect_whole(fetch("expired"));
  EXPECT_GT(count_of(server_->log(), "\"hub\""), 1u);
}

TEST_F(DownloadTest, ServersWithoutRangesGiveAllOfItAtOnce) {
  expect_whole(fetch("norange"));
  EXPECT_EQ(fetch("norange", false)->sha256, hex_digest(bytes_));
}

TEST_F(DownloadTest, WhatIsNotWhatWasDeclaredIsNotKept) {
  EXPECT_NE(error_of("hash").find("expected SHA-256 " + hex_digest(bytes_)), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
  EXPECT_EQ(error_of("short"), "a.gguf: expected 200000 bytes, as is declared, found 200001");
  EXPECT_NE(error_of("page", false).find("expected a GGUF file, found one that begins with"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
}

TEST_F(DownloadTest, AnswersThatLieAboutTheirRange) {
  options_.connections_max = 1;
  EXPECT_EQ(error_of("wide"), "a.gguf: expected bytes 0-39999, found 1-40000");
  EXPECT_NE(error_of("long").find("bytes, found more"), std::string::npos);
}

TEST_F(DownloadTest, RefusalsAreExplained) {
  EXPECT_EQ(error_of("gone"), "refused with 403");
  EXPECT_EQ(error_of("gated"), "refused with 401");
  EXPECT_NE(error_of("loop").find("redirects"), std::string::npos);
}

// Chunks that another run has finished are not asked for again.
TEST_F(DownloadTest, GoesOnWhereAnotherRunWasCutOff) {
  options_.connections_max = 1;
  EXPECT_NE(error_of("later").find("HTTP status 503"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(path_ + ".partial"));
  uint64_t total = 0;
  options_.on_progress = [&](uint64_t, uint64_t all) { total = all; };
  Result<Downloaded> done = fetch("later");
  expect_whole(done);
  EXPECT_EQ(done->resumed_bytes, 120'000u);
  EXPECT_EQ(total, 80'000u);
  EXPECT_EQ(count_of(server_->log(), "bytes=0-39999"), 1u);
}

TEST_F(DownloadTest, AFileThatChangesInTheMidstIsNotMixed) {
  EXPECT_EQ(error_of("swap"), "a.gguf: the file has changed while it was fetched; try again");
}

// Servers that do not look at If-Range, or say nothing that it takes.
TEST_F(DownloadTest, PartsOfAnotherContentAreNotMixed) {
  for (const char* behaviour : {"other", "weak", "dated"}) {
    EXPECT_EQ(error_of(behaviour, false),
              "a.gguf: the file has changed while it was fetched; try again")
        << behaviour;
  }
  EXPECT_NE(error_of("other").find("expected SHA-256"), std::string::npos);
}

// Another content under the same address, although the sizes are equal.
TEST_F(DownloadTest, AnotherFileIsNotGoneOnWith) {
  options_.connections_max = 1;
  EXPECT_FALSE(fetch("later"));
  put(folder_.path(), "tiny/a.gguf", bytes_ = model_bytes(kBytes, 2));
  for (const bool is_declared : {true, false}) {
    Result<Downloaded> done = fetch("later", is_declared);
    expect_whole(done);
    EXPECT_EQ(done->resumed_bytes, 0u);
  }
}

TEST_F(DownloadTest, AnotherFileThatIsThereIsReplacedOnlyByAWholeOne) {
  put(folder_.path(), "out/a.gguf", "old");
  EXPECT_FALSE(fetch("hash"));
  EXPECT_EQ(contents_of(path_), "old");
  expect_whole(fetch("usual"));
}

}  // namespace
}  // namespace cairn::hub::download_test
