// POST /v1/rerank: how well documents fit a query, by a model with a classifier.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "json/value.h"
#include "serve/routes/answering.h"
#include "serve/routes/embedding.h"

namespace cairn::serve {

namespace {

using Made = Checked<std::unique_ptr<http::Reply>>;

struct Ranking {
  std::string model;
  std::vector<std::string> documents;  // None: they are not told.
  size_t told_max = 0;
};

// The best first, equal ones as they were sent.
void write_ranking(const Ranking& ranking, const std::vector<Embedding>& scores,
                   int64_t token_count, std::string& out) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return scores[a].values.front() > scores[b].values.front();
  });
  order.resize(std::min(order.size(), ranking.told_max));
  json::Value results = json::Value::array();
  for (const size_t index : order) {
    json::Value one = {{"index", index}, {"relevance_score", double(scores[index].values.front())}};
    if (!ranking.documents.empty()) one["document"] = {{"text", ranking.documents[index]}};
    results.push_back(std::move(one));
  }
  const json::Value usage = {{"prompt_tokens", token_count}, {"total_tokens", token_count}};
  out += json::to_text({{"model", ranking.model},
                        {"object", "list"},
                        {"usage", usage},
                        {"results", std::move(results)}});
}

Checked<std::vector<std::string>> read_documents(const Body& body) {
  std::vector<std::string> documents;
  for (const json::Value& item : body.find("documents")->items()) {
    const auto text = item.is_object() ? item.text_at("text") : item.as_text();
    if (!text) {
      return refuse_field("documents", "expected texts, found {}", item.describe());
    }
    documents.emplace_back(*text);
  }
  return documents;
}

Made rerank(const RouteContext& context, http::Request& request) {
  const Engine& engine = context.model.engine();
  CAIRN_TRY(const Body body, Body::read(request.body, kRerank));
  if (engine.options().pooling != Pooling::rank || engine.tokenizer() == nullptr) {
    return Refusal{.status = 501,
                   .type = "not_supported_error",
                   .message = fmt::format("{} does not score texts", context.model.name)};
  }
  CAIRN_TRY(std::vector<std::string> documents, read_documents(body));
  // Made where the engine is; what reads a text is constant.
  std::optional<Embedder> embedder;
  context.model.service->ask(
      [&](Engine& own) { embedder.emplace(&own, EmbedderOptions{.truncates = false}); });
  VectorOrder order{.field = "documents"};
  const std::string_view query = *body.text("query");
  for (const std::string& document : documents) {
    Result<std::vector<Token>> pair = embedder->tokens_of_pair(query, document);
    if (!pair) return refusal_of(pair.error(), "query");
    if (int64_t(pair->size()) > engine.options().context_tokens) {
      return context_refusal(int64_t(pair->size()), engine.options().context_tokens);
    }
    order.texts.push_back(std::move(pair).value());
  }
  Ranking ranking{.model = context.model.name,
                  .told_max = size_t(body.integer("top_n").value_or(int64_t(documents.size())))};
  if (body.is_true("return_documents")) ranking.documents = std::move(documents);
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
