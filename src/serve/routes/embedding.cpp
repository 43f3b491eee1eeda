// POST /v1/embeddings, llama.cpp's POST /embedding, and what others share with it.
#include "serve/routes/embedding.h"

#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "json/value.h"
#include "serve/routes/answering.h"
#include "serve/text_input.h"

namespace cairn::serve {

namespace {

// What a reply of vectors of tokens holds at most: it is made at once, on the thread of all
// connections.
constexpr size_t kTokenNumbersMax = size_t(1) << 21;

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
void shorten(std::vector<float>& values, size_t dimensions) {
  if (dimensions >= values.size()) return;
  values.resize(dimensions);
  double sum = 0;
  for (const float value : values) sum = std::fma(double(value), double(value), sum);
  const double scale = sum > 0 ? 1 / std::sqrt(sum) : 0;
  for (float& value : values) value = float(double(value) * scale);
}

class VectorReply final : public http::Reply {
 public:
  VectorReply(const RouteContext& context, VectorOrder order, const JobTerms& terms,
              std::unique_ptr<Slots::Slot> slot)
      : context_(context),
        order_(std::move(order)),
        slot_(std::move(slot)),
        outcome_(std::make_shared<Outcome>()) {
    const EmbedderOptions options{.normalizes = order_.normalizes, .truncates = order_.truncates};
    id_ = context_.model.service->embed(std::move(order_.texts), options, terms,
                                        [outcome = outcome_](Result<std::vector<Embedding>> made) {
                                          const std::lock_guard lock(outcome->mutex);
                                          outcome->made = std::move(made);
                                          if (outcome->wake) outcome->wake();
                                        });
  }
  ~VectorReply() override {
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
      std::vector<Embedding> vectors = std::move(*made).value();
      for (const Embedding& vector : vectors) token_count_ += vector.token_count;
      order_.write(vectors, token_count_, out);
      context_.metrics->of(context_.model.name)->add_embedded(token_count_);
    } else {
      Refusal refusal = answer_refusal_of(made->error());
      if (refusal.status < 500) refusal.field = order_.field;
      head_ = refusal_head(refusal);
      out += refusal_json(refusal, order_.form);
    }
    return State::ended;
  }
  const http::ReplyHead* head() const override { return head_ ? &*head_ : nullptr; }
  std::vector<std::pair<std::string, int64_t>> figures() const override {
    return {{"prompt_tokens", token_count_}};
  }

 private:
  const RouteContext context_;
  VectorOrder order_;
  std::unique_ptr<Slots::Slot> slot_;
  std::shared_ptr<Outcome> outcome_;
  JobId id_{};
  std::optional<http::ReplyHead> head_;
  int64_t token_count_ = 0;
};

Checked<std::vector<Token>> encode(const Engine& engine, const TextInput& input,
                                   std::string_view field, bool truncates) {
  std::vector<Token> tokens = input.tokens;
  if (input.text) {
    if (input.text->empty()) return refuse_field(field, "expected texts that are not empty");
    if (engine.tokenizer() == nullptr) {
      return refuse_field(field, "expected token ids: the model has no vocabulary");
    }
    tokens = engine.tokenizer()->encode(*input.text, {.add_special = true});
  }
  for (const Token token : tokens) {
    if (index_of(token) < engine.size().vocabulary_count) continue;
    return refuse_field(field,
                        "expected token ids below {}, found {}; of another tokenizer? (clients of "
                        "LangChain: check_embedding_ctx_length=False)",
                        engine.size().vocabulary_count, index_of(token));
  }
  if (tokens.empty()) return refuse_field(field, "expected at least one token, found none");
  if (!truncates && int64_t(tokens.size()) > engine.options().context_tokens) {
    return context_refusal(int64_t(tokens.size()), engine.options().context_tokens);
  }
  return tokens;
}

Checked<std::unique_ptr<http::Reply>> embed(const RouteContext& context, http::Request& request) {
  CAIRN_TRY(const Body body, Body::read(request.body, kEmbedding));
  const std::string_view encoding = body.text("encoding_format").value_or("float");
  if (encoding != "float" && encoding != "base64") {
    return refuse_field("encoding_format", "expected float or base64, found \"{}\"", encoding);
  }
  VectorOrder order;
  CAIRN_TRY(order.texts, read_vector_texts(context, body, "input", false));
  const bool is_base64 = encoding == "base64";
  const std::optional<int64_t> dimensions = body.integer("dimensions");
  order.write = [name = context.model.name, is_base64, dimensions](
                    std::vector<Embedding>& vectors, int64_t token_count, std::string& out) {
    out += R"({"object":"list","model":)" + json::to_text(json::Value(name)) + R"(,"data":[)";
    for (size_t index = 0; index < vectors.size(); ++index) {
      out += fmt::format(R"({}{{"object":"embedding","index":{},"embedding":)",
                         index == 0 ? "" : ",", index);
      append_vector(vectors[index].values, dimensions, is_base64, out);
      out += '}';
    }
    out += fmt::format(R"(],"usage":{{"prompt_tokens":{0},"total_tokens":{0}}}}})", token_count);
  };
  return begin_vectors(context, request, std::move(order));
}

// Of each text a list of vectors: one, or with pooling none one for each token.
void write_vectors(const std::vector<Embedding>& texts, size_t width, std::string& out) {
  out += '[';
  for (size_t index = 0; index < texts.size(); ++index) {
    out += fmt::format(R"({}{{"index":{},"embedding":[)", index == 0 ? "" : ",", index);
    const std::vector<float>& values = texts[index].values;
    for (size_t begin = 0; begin < values.size(); begin += width) {
      const auto first = values.begin() + ptrdiff_t(begin);
      std::vector<float> vector(first, first + ptrdiff_t(width));
      if (begin > 0) out += ',';
      append_vector(vector, std::nullopt, false, out);
    }
    out += "]}";
  }
  out += ']';
}

Checked<std::unique_ptr<http::Reply>> embed_as_llama(const RouteContext& context,
                                                     http::Request& request) {
  CAIRN_TRY(const Body body, Body::read(request.body, kVectors));
  VectorOrder order{.field = body.find("content") != nullptr ? "content" : "input"};
  if (body.find(order.field) == nullptr) {
    return refuse_field("content", "expected texts or token ids, found none");
  }
  const int64_t norm = body.integer("embd_normalize").value_or(2);
  if (norm != 2 && norm != -1) {
    return refuse_field("embd_normalize", "expected 2 or -1, found {}", norm);
  }
  if (norm == -1) order.normalizes = false;
  CAIRN_TRY(order.texts, read_vector_texts(context, body, order.field, false));
  size_t width = 0;
  context.model.service->ask([&](Engine& own) { width = size_t(Embedder(&own, {}).width()); });
  if (context.model.engine().options().pooling == Pooling::none) {
    size_t count = 0;
    for (const std::vector<Token>& text : order.texts) count += text.size() * width;
    if (count > kTokenNumbersMax) {
      return refuse_field(order.field,
                          "expected vectors of tokens of at most {} numbers together, found {}",
                          kTokenNumbersMax, count);
    }
  }
  order.write = [width](std::vector<Embedding>& texts, int64_t, std::string& out) {
    write_vectors(texts, width, out);
  };
  return begin_vectors(context, request, std::move(order));
}

}  // namespace

void append_vector(std::vector<float>& values, std::optional<size_t> dimensions, bool is_base64,
                   std::string& out) {
  if (dimensions) shorten(values, *dimensions);
  if (is_base64) {
    std::string bytes(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    out += '"' + base64(bytes) + '"';
    return;
  }
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    out += fmt::format("{}{}", i == 0 ? "" : ",", values[i]);
  }
  out += ']';
}

Checked<std::vector<std::vector<Token>>> read_vector_texts(const RouteContext& context,
                                                           const Body& body, std::string_view field,
                                                           bool truncates) {
  const Engine& engine = context.model.engine();
  const std::optional<Pooling> pooling = engine.options().pooling;
  const bool may_be_tokens = body.endpoint() == kVectors;
  if (!pooling || (*pooling == Pooling::none && !may_be_tokens) || *pooling == Pooling::rank) {
    return Refusal{.status = 501,
                   .type = "not_supported_error",
                   .message = fmt::format("{} is not served for embeddings (cairn serve --pooling)",
                                          context.model.name)};
  }
  CAIRN_TRY(const std::vector<TextInput> inputs, read_text_inputs(body, field, 2048));
  std::vector<std::vector<Token>> texts;
  for (const TextInput& input : inputs) {
    CAIRN_TRY(std::vector<Token> tokens, encode(engine, input, field, truncates));
    texts.push_back(std::move(tokens));
  }
  return texts;
}

Checked<std::unique_ptr<http::Reply>> begin_vectors(const RouteContext& context,
                                                    http::Request& request, VectorOrder order) {
  CAIRN_TRY(Admission admission, admit(context, request));
  return std::unique_ptr<http::Reply>(std::make_unique<VectorReply>(
      context, std::move(order), admission.terms, std::move(admission.slot)));
}

std::unique_ptr<http::Reply> post_embedding(const RouteContext& context, http::Request& request) {
  return reply_of(embed(context, request));
}

std::unique_ptr<http::Reply> post_vectors(const RouteContext& context, http::Request& request) {
  return reply_of(embed_as_llama(context, request));
}

}  // namespace cairn::serve
