// Reranking over HTTP: the scores of the embedder, the best first. Covers routes/rerank.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/models/embedding_case.h"
#include "tests/serve/serving.h"

namespace cairn::serve::rerank_test {
namespace {

using nlohmann::json;

constexpr char kPath[] = "/v1/rerank";

class RerankTest : public ::testing::Test {
 protected:
  RerankTest()
      : serving_({}, cairn::test::embedding_path("roberta_scores", ".gguf"),
                 cairn::test::embedding_options(Pooling::rank)) {}
  Serving serving_;
};

TEST_F(RerankTest, TellsTheBestFirst) {
  const std::vector<std::string> documents = {"one", "some other text", "the way", "1 2 3"};
  const json reply = serving_.post_json(
      kPath, {{"query", "which way"}, {"documents", documents}, {"return_documents", true}});
  ASSERT_EQ(reply["results"].size(), documents.size());
  std::vector<double> scores(documents.size());
  for (size_t place = 0; place < documents.size(); ++place) {
    const json& one = reply["results"][place];
    if (place > 0) {
      EXPECT_LE(one["relevance_score"], reply["results"][place - 1]["relevance_score"]);
    }
    const size_t index = one["index"];
    EXPECT_EQ(one["document"]["text"], documents[index]);
    scores[index] = one["relevance_score"];
  }
  EXPECT_GT(reply["usage"]["prompt_tokens"].get<int>(), 0);
  // Each document's score is its own.
  for (size_t index = 0; index < documents.size(); ++index) {
    const json body = {{"query", "which way"}, {"documents", {{{"text", documents[index]}}}}};
    const json alone = serving_.post_json("/rerank", body);
    EXPECT_EQ(alone["results"][0]["relevance_score"], scores[index]);
    EXPECT_FALSE(alone["results"][0].contains("document"));
  }
  const json best =
      serving_.post_json(kPath, {{"query", "which way"}, {"documents", documents}, {"top_n", 2}});
  ASSERT_EQ(best["results"].size(), 2u);
  EXPECT_EQ(best["results"][1]["index"], reply["results"][1]["index"]);
}

// What Text Embeddings Inference is sent and tells.
TEST_F(RerankTest, TextsAreScoredInAList) {
  const std::vector<std::string> texts = {"one", "some other text", "the way"};
  const json ranked =
      serving_.post_json(kPath, {{"query", "which way"}, {"documents", texts}})["results"];
  json body = {{"query", "which way"}, {"texts", texts}, {"return_text", true}};
  const json shares = serving_.post_json("/rerank", body);
  body["raw_scores"] = true;
  body["top_n"] = 2;
  const json raw = serving_.post_json("/rerank", body);
  ASSERT_EQ(shares.size(), 3u);
  ASSERT_EQ(raw.size(), 2u);
  for (size_t place = 0; place < shares.size(); ++place) {
    const json& one = shares[place];
    EXPECT_EQ(one["index"], ranked[place]["index"]);
    EXPECT_EQ(one["text"], texts[one["index"].get<size_t>()]);
    const double score = ranked[place]["relevance_score"];
    EXPECT_NEAR(one["score"].get<double>(), 1 / (1 + std::exp(-score)), 1e-6);
    if (place < raw.size()) {
      EXPECT_EQ(raw[place]["score"], score);
    }
  }
  body.erase("return_text");
  EXPECT_FALSE(serving_.post_json("/rerank", body)[0].contains("text"));
}

TEST_F(RerankTest, LongTextsAreCutOffWhereThatIsAskedFor) {
  std::string large;
  for (int word = 0; word < 500; ++word) large += "word ";
  json body = {{"query", "x"}, {"texts", {large, "word"}}, {"truncate", true}};
  EXPECT_EQ(serving_.post_json("/rerank", body).size(), 2u);
  body.erase("truncate");
  const BareReply refused = serving_.post("/rerank", body.dump());
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("context_length_exceeded"), std::string::npos);
}

TEST_F(RerankTest, RefusalsNameTheField) {
  using Refused = std::pair<int, std::string>;
  EXPECT_EQ(serving_.refused(kPath, {{"documents", {"x"}}}), Refused(400, "query"));
  EXPECT_EQ(serving_.refused(kPath, {{"query", "x"}}), Refused(400, "documents"));
  EXPECT_EQ(serving_.refused(kPath, {{"query", "x"}, {"documents", {5}}}),
            Refused(400, "documents"));
  EXPECT_EQ(serving_.refused(kPath, {{"query", "x"}, {"texts", {5}}}), Refused(400, "texts"));
  EXPECT_EQ(serving_.refused(kPath, {{"query", "x"}, {"documents", {"a"}}, {"texts", {"a"}}}),
            Refused(400, "documents"));
  EXPECT_EQ(
      serving_.refused(kPath, {{"query", "x"}, {"texts", {"a"}}, {"truncation_direction", "left"}}),
      Refused(400, "truncation_direction"));
  std::string large;
  for (int word = 0; word < 500; ++word) large += "word ";
  const BareReply refused =
      serving_.post(kPath, json{{"query", "x"}, {"documents", {large}}}.dump());
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("context_length_exceeded"), std::string::npos);
  EXPECT_EQ(serving_.refused(kPath, {{"query", large}, {"documents", {"x"}}}),
            Refused(400, "query"));
}

TEST(Rerank, NeedsAModelThatScores) {
  Serving serving;
  EXPECT_EQ(serving.refused(kPath, {{"query", "x"}, {"documents", {"x"}}}).first, 501);
}

}  // namespace
}  // namespace cairn::serve::rerank_test
