// POST /v1/embeddings.
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/embedder.h"
#include "serve/answer_json.h"
#include "serve/routes/answering.h"
#include "serve/text_input.h"

namespace cairn::serve {

namespace {

struct EmbeddingStyle {
  bool is_base64 = false;
  std::optional<size_t> dimensions;  // Of each vector; else all.
};

// What the engine's thread hands over.
struct Outcome {
  std::mutex mutex;
  std::function<void()> wake;
  std::optional<Result<std::vector<Embedding>>> made;
};

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (k < count ? uint8_t(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) out += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

// Cut off, and of length 1 again.
std::span<const float> shortened(std::vector<float>& values, const EmbeddingStyle& style) {
  if (!style.dimensions || *style.dimensions >= values.size()) return values;
  values.resize(*style.dimensions);
  double sum = 0;
  for (const float value : values) sum = std::fma(double(value), double(value), sum);
  const double scale = sum > 0 ? 1 / std::sqrt(sum) : 0;
  for (float& value : values) value = float(double(value) * scale);
  return values;
}

void append_vector(std::span<const float> values, bool is_base64, std::string& out) {
  if (is_base64) {
    std::string bytes(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    out += '"' + base64(bytes) + '"';
    return;
  }
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : ",", values[i]);
  }
  out += ']';
}

class EmbeddingReply final : public http::Reply {
 public:
  EmbeddingReply(const RouteContext& context, EmbeddingStyle style,
                 std::vector<std::vector<Token>> texts, const JobTerms& terms,
                 std::unique_ptr<Slots::Slot> slot)
      : context_(context),
        style_(style),
        slot_(std::move(slot)),
        outcome_(std::make_shared<Outcome>()) {
    id_ = context_.model.service->embed(std::move(texts), {}, terms,
                                        [outcome = outcome_](Result<std::vector<Embedding>> made) {
                                          const std::lock_guard lock(outcome->mutex);
                                          outcome->made = std::move(made);
                                          if (outcome->wake) outcome->wake();
                                        });
  }
  ~EmbeddingReply() override {
    const std::lock_guard lock(outcome_->mutex);
    outcome_->wake = {};
    if (!head_) context_.model.service->cancel(id_);
  }

  void listen(std::function<void()> wake) override {
    const std::lock_guard lock(outcome_->mutex);
    outcome_->wake = std::move(wake);
  }
  State read(std::string& out) override {
    std::optional<Result<std::vector<Embedding>>> made;
    {
      const std::lock_guard lock(outcome_->mutex);
      made = std::move(outcome_->made);
    }
    if (!made) return State::waiting;
    if (*made) {
      head_.emplace();
      write(std::move(*made).value(), out);
    } else {
      const Refusal refusal = refusal_of(made->error(), "input");
      head_ = refusal_head(refusal);
      out += refusal_json(refusal);
    }
    return State::ended;
  }
  const http::ReplyHead* head() const override { return head_ ? &*head_ : nullptr; }
  std::vector<std::pair<std::string, int64_t>> figures() const override {
    return {{"prompt_tokens", token_count_}};
  }

 private:
  void write(std::vector<Embedding> embeddings, std::string& out) {
    out += R"({"object":"list","model":)" + json::to_text(json::Value(context_.model.name)) +
           R"(,"data":[)";
    for (size_t index = 0; index < embeddings.size(); ++index) {
      fmt::format_to(std::back_inserter(out), R"({}{{"object":"embedding","index":{},"embedding":)",
                     index == 0 ? "" : ",", index);
      append_vector(shortened(embeddings[index].values, style_), style_.is_base64, out);
      out += '}';
      token_count_ += embeddings[index].token_count;
    }
    fmt::format_to(std::back_inserter(out),
                   R"(],"usage":{{"prompt_tokens":{0},"total_tokens":{0}}}}})", token_count_);
    context_.metrics->add_embedded(token_count_);
  }

  const RouteContext& context_;
  EmbeddingStyle style_;
  std::unique_ptr<Slots::Slot> slot_;
  std::shared_ptr<Outcome> outcome_;
  JobId id_{};
  std::optional<http::ReplyHead> head_;
  int64_t token_count_ = 0;
};

Checked<EmbeddingStyle> read_style(const Body& body) {
  EmbeddingStyle style;
  const std::string_view encoding = body.text("encoding_format").value_or("float");
  if (encoding != "float" && encoding != "base64") {
    return refuse_field("encoding_format", "expected float or base64, found \"{}\"", encoding);
  }
  style.is_base64 = encoding == "base64";
  if (const auto count = body.integer("dimensions")) style.dimensions = size_t(*count);
  return style;
}

Checked<std::vector<Token>> encode(const Engine& engine, const TextInput& input) {
  std::vector<Token> tokens = input.tokens;
  if (input.text) {
    if (input.text->empty()) return refuse_field("input", "expected texts that are not empty");
    if (engine.tokenizer() == nullptr) {
      return refuse_field("input", "expected token ids: the model has no vocabulary");
    }
    tokens = engine.tokenizer()->encode(*input.text, {.add_special = true});
  }
  for (const Token token : tokens) {
    if (index_of(token) < engine.size().vocabulary_count) continue;
    return refuse_field("input",
                        "expected token ids below {}, found {}; of another tokenizer? (clients of "
                        "LangChain: check_embedding_ctx_length=False)",
                        engine.size().vocabulary_count, index_of(token));
  }
  if (tokens.empty()) return refuse_field("input", "expected at least one token, found none");
  if (int64_t(tokens.size()) > engine.options().context_tokens) {
    return context_refusal(int64_t(tokens.size()), engine.options().context_tokens);
  }
  return tokens;
}

Checked<std::unique_ptr<http::Reply>> embed_texts(const RouteContext& context,
                                                  http::Request& request) {
  const Engine& engine = context.model.engine();
  const std::optional<Pooling> pooling = engine.options().pooling;
  if (!pooling || *pooling == Pooling::none || *pooling == Pooling::rank) {
    return Refusal{.status = 501,
                   .type = "not_supported_error",
                   .message = fmt::format("{} is not served for embeddings (cairn serve --pooling)",
                                          context.model.name)};
  }
  CAIRN_TRY(const Body body, Body::read(request.body, kEmbedding));
  CAIRN_TRY(const EmbeddingStyle style, read_style(body));
  CAIRN_TRY(const std::vector<TextInput> inputs, read_text_inputs(body, "input", 2048));
  std::vector<std::vector<Token>> texts;
  for (const TextInput& input : inputs) {
    CAIRN_TRY(std::vector<Token> tokens, encode(engine, input));
    texts.push_back(std::move(tokens));
  }
  std::unique_ptr<Slots::Slot> slot = context.slots->take(request.client);
  if (slot == nullptr) return busy_refusal("the server answers as many requests as it may");
  const JobTerms terms{.client = request.client.empty() ? request.address : request.client};
  return std::unique_ptr<http::Reply>(
      std::make_unique<EmbeddingReply>(context, style, std::move(texts), terms, std::move(slot)));
}

}  // namespace

std::unique_ptr<http::Reply> post_embedding(const RouteContext& context, http::Request& request) {
  return reply_of(embed_texts(context, request));
}

}  // namespace cairn::serve
