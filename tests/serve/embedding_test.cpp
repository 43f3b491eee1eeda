// Embeddings over HTTP: the embedder's numbers, in both encodings.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/models/embedding_case.h"
#include "tests/serve/serving.h"

namespace cairn::serve::embedding_test {
namespace {

using nlohmann::json;

constexpr char kPath[] = "/v1/embeddings";

std::vector<float> floats_of(const std::string& base64) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : base64) {
    if (c == '=') break;
    bits = bits << 6 | uint32_t(digits.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += char(bits >> count & 255);
  }
  std::vector<float> values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), values.size() * 4);
  return values;
}

class EmbeddingTest : public ::testing::Test {
 protected:
  EmbeddingTest()
      : golden_(cairn::test::read_embedding_case("bert")),
        serving_({}, cairn::test::embedding_path("bert", ".gguf"),
                 cairn::test::embedding_options(Pooling::mean)) {
    for (const auto& sequence : golden_.sequences) {
      json ids = json::array();
      for (const Token token : sequence.tokens) ids.push_back(index_of(token));
      inputs_.push_back(std::move(ids));
    }
  }

  cairn::test::EmbeddingCase golden_;
  json inputs_ = json::array();
  Serving serving_;
};

TEST_F(EmbeddingTest, AreThoseOfTheEmbedder) {
  const json reply = serving_.post_json(kPath, {{"input", inputs_}});
  EXPECT_EQ(reply["object"], "list");
  ASSERT_EQ(reply["data"].size(), golden_.sequences.size());
  int token_count = 0;
  for (size_t index = 0; index < golden_.sequences.size(); ++index) {
    const json& one = reply["data"][index];
    EXPECT_EQ(one["index"], index);
    const auto& expected = golden_.sequences[index].vectors.at(Pooling::mean);
    ASSERT_EQ(one["embedding"].size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(one["embedding"][i].get<float>(), expected[i], 1e-3) << index << " " << i;
    }
    token_count += int(golden_.sequences[index].tokens.size());
  }
  EXPECT_EQ(reply["usage"]["prompt_tokens"], token_count);
  // The same bits in the other encoding.
  const json packed =
      serving_.post_json(kPath, {{"input", inputs_}, {"encoding_format", "base64"}});
  for (size_t index = 0; index < golden_.sequences.size(); ++index) {
    EXPECT_EQ(floats_of(packed["data"][index]["embedding"].get<std::string>()),
              reply["data"][index]["embedding"].get<std::vector<float>>());
  }
}

TEST_F(EmbeddingTest, MayBeShorter) {
  const json reply = serving_.post_json(kPath, {{"input", inputs_[0]}, {"dimensions", 4}});
  const auto values = reply["data"][0]["embedding"].get<std::vector<float>>();
  ASSERT_EQ(values.size(), 4u);
  double sum = 0;
  for (const float value : values) sum += double(value) * double(value);
  EXPECT_NEAR(sum, 1, 1e-5);
}

// As llama.cpp's server tells them: lists of lists.
TEST_F(EmbeddingTest, LlamasFormHasTheSameNumbers) {
  const json told = serving_.post_json(kPath, {{"input", inputs_}})["data"];
  for (const char* path : {"/embedding", "/embeddings"}) {
    const json reply = serving_.post_json(path, {{"content", inputs_}});
    ASSERT_EQ(reply.size(), told.size());
    for (size_t index = 0; index < told.size(); ++index) {
      EXPECT_EQ(reply[index]["index"], index);
      ASSERT_EQ(reply[index]["embedding"].size(), 1u);
      EXPECT_EQ(reply[index]["embedding"][0], told[index]["embedding"]);
    }
  }
  const json whole =
      serving_.post_json("/embedding", {{"input", inputs_[0]}, {"embd_normalize", -1}});
  const auto values = whole[0]["embedding"][0].get<std::vector<float>>();
  const auto& row = golden_.sequences[0].rows;
  for (size_t i = 0; i < values.size(); ++i) {
    float mean = 0;
    for (size_t at = i; at < row.size(); at += values.size()) mean += row[at];
    EXPECT_NEAR(values[i], mean / float(row.size() / values.size()), 1e-3) << i;
  }
  using Refused = std::pair<int, std::string>;
  EXPECT_EQ(serving_.refused("/embedding", json::object()), Refused(400, "content"));
  EXPECT_EQ(serving_.refused("/embedding", {{"content", ""}}), Refused(400, "content"));
  EXPECT_EQ(serving_.refused("/embedding", {{"input", json::object()}}), Refused(400, "input"));
  EXPECT_EQ(serving_.refused("/embedding", {{"content", inputs_[0]}, {"embd_normalize", 1}}),
            Refused(400, "embd_normalize"));
}

// Without pooling there is a vector for each token, and no other route has a place for that.
TEST(Embeddings, OfEachToken) {
  const cairn::test::EmbeddingCase golden = cairn::test::read_embedding_case("bert");
  Serving serving({}, cairn::test::embedding_path("bert", ".gguf"),
                  cairn::test::embedding_options(Pooling::none));
  const auto& sequence = golden.sequences[0];
  json ids = json::array();
  for (const Token token : sequence.tokens) ids.push_back(index_of(token));
  const json vectors = serving.post_json("/embedding", {{"content", ids}})[0]["embedding"];
  ASSERT_EQ(vectors.size(), sequence.tokens.size());
  for (size_t token = 0; token < vectors.size(); ++token) {
    ASSERT_EQ(vectors[token].size(), size_t(golden.width));
    for (size_t i = 0; i < vectors[token].size(); ++i) {
      const float expected = sequence.rows[token * size_t(golden.width) + i];
      EXPECT_NEAR(vectors[token][i].get<float>(), expected, 1e-3) << token << " " << i;
    }
  }
  EXPECT_EQ(serving.post(kPath, json{{"input", ids}}.dump()).status, 501);
  // As many numbers as no reply may hold.
  json text = json::array();
  for (int token = 0; token < 60; ++token) text.push_back(ids[0]);
  const std::vector<json> texts(2048, text);
  EXPECT_EQ(serving.refused("/embedding", {{"content", texts}}),
            (std::pair<int, std::string>(400, "content")));
}

TEST_F(EmbeddingTest, RefusalsNameTheField) {
  using Refused = std::pair<int, std::string>;
  EXPECT_EQ(serving_.refused(kPath, json::object()), Refused(400, "input"));
  EXPECT_EQ(serving_.refused(kPath, {{"input", ""}}), Refused(400, "input"));
  EXPECT_EQ(serving_.refused(kPath, {{"input", json::array()}}), Refused(400, "input"));
  EXPECT_EQ(serving_.refused(kPath, {{"input", json::array({100000000})}}), Refused(400, "input"));
  EXPECT_EQ(serving_.refused(kPath, {{"input", inputs_[0]}, {"encoding_format", "hex"}}),
            Refused(400, "encoding_format"));
  EXPECT_EQ(serving_.refused(kPath, {{"input", inputs_[0]}, {"dimensions", 0}}),
            Refused(400, "dimensions"));
  EXPECT_EQ(serving_.post("/v1/chat/completions", question("x").dump()).status, 501)
      << "the model makes no text";
}

TEST(Embeddings, OfAModelThatMakesText) {
  Serving serving;
  EXPECT_EQ(serving.post(kPath, R"({"input":"x"})").status, 501);
  EXPECT_EQ(serving.post("/embedding", R"({"content":"x"})").status, 501);
}

}  // namespace
}  // namespace cairn::serve::embedding_test
