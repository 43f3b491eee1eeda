// Headers of models that are not fetched: of files large and small, split, and of servers that
// behave badly.
#include "hub/remote_header.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "gguf/gguf.h"
#include "gguf/writer.h"
#include "tests/hub/hub_server.h"

namespace cairn::hub::remote_header_test {
namespace {

using test::ScratchFolder;

// A vocabulary of so many bytes, and a tensor of 4 MiB.
std::string model_with(size_t vocabulary_bytes) {
  gguf::Writer writer;
  writer.add("general.architecture", "llama");
  const std::vector<std::string> words(vocabulary_bytes / 1000, std::string(992, 'x'));
  if (!words.empty()) writer.add_array("tokenizer.ggml.tokens", std::span(words));
  const int64_t dims[] = {1024, 1024};
  writer.declare("output.weight", dims, 0);
  std::vector<std::byte> bytes;
  gguf::TensorStream stream = writer.open_memory(bytes).value();
  EXPECT_TRUE(stream.append(std::vector<std::byte>(4 << 20)));
  EXPECT_TRUE(stream.finish());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class RemoteHeaderTest : public testing::Test {
 protected:
  RemoteHeaderTest() {
    put(there_.path(), "small/a-Q8_0.gguf", model_with(0));
    put(there_.path(), "large/a-Q8_0.gguf", model_with(3'000'000));
    put(there_.path(), "none/a-Q8_0.gguf", model_bytes(3'000'000));
    put(there_.path(), "split/b-00001-of-00002.gguf", model_with(0));
    put(there_.path(), "split/b-00002-of-00002.gguf", model_with(2'000'000));
    server_ = std::make_unique<HubServer>(there_.path());
    settings_.hub_url = settings_.ollama_url = server_->url();
    options_.patience = {.failures_max = 2,
                         .wait_first = std::chrono::milliseconds(5),
                         .wait_max = std::chrono::milliseconds(20)};
  }
  Result<RemoteHeader> get(const std::string& name) {
    return fetch_header(settings_, parse_pull_reference(name).value(), options_);
  }

  ScratchFolder there_;
  std::unique_ptr<HubServer> server_;
  HubSettings settings_;
  WebOptions options_;
};

TEST_F(RemoteHeaderTest, TakesAsMuchAsTheHeaderHas) {
  auto small = get("acme/good-small");
  ASSERT_TRUE(small) << small.error().message;
  EXPECT_EQ(small->name, "hf:acme/good-small:a-Q8_0.gguf");
  EXPECT_EQ(small->fetched_bytes, 1u << 20);
  auto large = get("acme/good-large");
  ASSERT_TRUE(large) << large.error().message;
  EXPECT_EQ(large->fetched_bytes, 4u << 20);
  const gguf::File file = gguf::File::from_bytes(std::as_bytes(std::span(large->parts[0])), "a",
                                                 gguf::OpenMode::inspect)
                              .value();
  EXPECT_EQ(file.tensors()[0].name, "output.weight");
  // No byte twice: the hub is asked, and then the storage that it names.
  EXPECT_EQ(count_of(server_->log(), "\"range\": \"bytes=1048576-2097151\""), 2u);
}

TEST_F(RemoteHeaderTest, HasAllParts) {
  auto split = get("acme/good-split");
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_EQ(split->parts.size(), 2u);
}

TEST_F(RemoteHeaderTest, SaysWhatIsWrong) {
  auto none = get("acme/good-none");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("a-Q8_0.gguf: the header: expected GGUF version"),
            std::string::npos)
      << none.error().message;
  auto all = get("acme/norange-large");
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, ErrorCode::no_room) << all.error().message;
  EXPECT_FALSE(get("acme/gone-small"));
  EXPECT_FALSE(get("acme/good-nothing"));
}

}  // namespace
}  // namespace cairn::hub::remote_header_test
