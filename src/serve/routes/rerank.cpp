// POST /v1/rerank: how well texts fit a query, by a model with a classifier.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/elementary.h"
#include "json/value.h"
#include "serve/routes/answering.h"
#include "serve/routes/embedding.h"

namespace cairn::serve {

namespace {

using Made = Checked<std::unique_ptr<http::Reply>>;

struct Ranking {
  std::string model;
  std::vector<std::string> texts;  // None: they are not told.
  size_t told_max = 0;
  // In the words of Text Embeddings Inference; then scores are probabilities, or as the model has
  // them.
  bool is_list = false, is_raw = false;
};

// By their scores, the best first, equal ones as they were sent.
std::vector<size_t> order_of(const Ranking& ranking, const std::vector<Embedding>& scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return scores[a].values.front() > scores[b].values.front();
  });
  order.resize(std::min(order.size(), ranking.told_max));
  return order;
}

json::Value scored_text(const Ranking& ranking, size_t index, float score) {
  if (!ranking.is_raw) score = elementary::sigmoid(score);
  json::Value one = {{"index", index}, {"score", double(score)}};
  if (!ranking.texts.empty()) one["text"] = ranking.texts[index];
  return one;
}

json::Value ranked_document(const Ranking& ranking, size_t index, float score) {
  json::Value one = {{"index", index}, {"relevance_score", double(score)}};
  if (!ranking.texts.empty()) one["document"] = {{"text", ranking.texts[index]}};
  return one;
}

void write_ranking(const Ranking& ranking, const std::vector<Embedding>& scores,
                   int64_t token_count, std::string& out) {
  json::Value results = json::Value::array();
  for (const size_t index : order_of(ranking, scores)) {
    const float score = scores[index].values.front();
    results.push_back(ranking.is_list ? scored_text(ranking, index, score)
                                      : ranked_document(ranking, index, score));
  }
  if (ranking.is_list) {
    out += json::to_text(results);
    return;
  }
  const json::Value usage = {{"prompt_tokens", token_count}, {"total_tokens", token_count}};
  out += json::to_text({{"model", ranking.model},
                        {"object", "list"},
                        {"usage", usage},
                        {"results", std::move(results)}});
}

Checked<std::vector<std::string>> read_texts(const Body& body, std::string_view field) {
  std::vector<std::string> texts;
  for (const json::Value& item : body.find(field)->items()) {
    const auto text = item.is_object() ? item.text_at("text") : item.as_text();
    if (!text) return refuse_field(field, "expected texts, found {}", item.describe());
    texts.emplace_back(*text);
  }
  return texts;
}

// Which of the two names the request has for its texts.
Checked<std::string_view> field_of_texts(const Body& body) {
  const bool has_texts = body.find("texts") != nullptr;
  if (has_texts == (body.find("documents") != nullptr)) {
    return refuse_field("documents", "expected documents or texts, found {}",
                        has_texts ? "both" : "neither");
  }
  if (body.text("truncation_direction").value_or("right") != "right") {
    return refuse_field("truncation_direction", "expected right, found another");
  }
  return std::string_view(has_texts ? "texts" : "documents");
}

// The tokens of each text behind the query's.
Checked<std::vector<std::vector<Token>>> read_pairs(const RouteContext& context, const Body& body,
                                                    const std::vector<std::string>& texts) {
  const int32_t context_tokens = context.model.engine().options().context_tokens;
  // Made where the engine is; what reads a text is constant.
  std::optional<Embedder> embedder;
  context.model.service->ask([&](Engine& own) { embedder.emplace(&own, EmbedderOptions{}); });
  std::vector<std::vector<Token>> pairs;
  for (const std::string& text : texts) {
    Result<std::vector<Token>> pair = embedder->tokens_of_pair(*body.text("query"), text);
    if (!pair) return refusal_of(pair.error(), "query");
    if (int64_t(pair->size()) > context_tokens && !body.is_true("truncate")) {
      return context_refusal(int64_t(pair->size()), context_tokens);
    }
    pairs.push_back(std::move(pair).value());
  }
  return pairs;
}

Made rerank(const RouteContext& context, http::Request& request) {
  const Engine& engine = context.model.engine();
  CAIRN_TRY(const Body body, Body::read(request.body, kRerank));
  if (engine.options().pooling != Pooling::rank || engine.tokenizer() == nullptr) {
    return Refusal{.status = 501,
                   .type = "not_supported_error",
                   .message = fmt::format("{} does not score texts", context.model.name)};
  }
  CAIRN_TRY(const std::string_view field, field_of_texts(body));
  CAIRN_TRY(std::vector<std::string> texts, read_texts(body, field));
  VectorOrder order{.truncates = body.is_true("truncate"), .field = field};
  CAIRN_TRY(order.texts, read_pairs(context, body, texts));
  Ranking ranking{.model = context.model.name,
                  .told_max = size_t(body.integer("top_n").value_or(int64_t(texts.size()))),
                  .is_list = field == "texts",
                  .is_raw = body.is_true("raw_scores")};
  if (body.is_true(ranking.is_list ? "return_text" : "return_documents")) {
    ranking.texts = std::move(texts);
  }
  order.write = [ranking = std::move(ranking)](std::vector<Embedding>& scores, int64_t token_count,
                                               std::string& out) {
    write_ranking(ranking, scores, token_count, out);
  };
  return begin_vectors(context, request, std::move(order));
}

}  // namespace

std::unique_ptr<http::Reply> post_rerank(const RouteContext& context, http::Request& request) {
  return reply_of(rerank(context, request));
}

}  // namespace cairn::serve
