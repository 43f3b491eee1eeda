// Steps of whole texts, and the pooling of their rows.
#include "engine/embedder.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "base/check.h"

namespace cairn {

// What has been gathered of one text.
struct Embedder::Pooled {
  Pooling pooling = Pooling::none;
  int32_t token_count = 0;  // Of the whole text.
  int32_t read_count = 0;   // Tokens whose rows were added.
  std::vector<float> values = {};

  // Which of the next `count` tokens' rows are wanted.
  std::vector<int32_t> wanted(int32_t count) const {
    std::vector<int32_t> out;
    for (int32_t i = 0; i < count; ++i) {
      const int32_t token = read_count + i;
      const bool is_wanted = pooling == Pooling::none || pooling == Pooling::mean ||
                             (pooling == Pooling::last ? token == token_count - 1 : token == 0);
      if (is_wanted) out.push_back(i);
    }
    return out;
  }
  // The wanted rows of the next `count` tokens.
  void add(const StepOutputs& rows, int32_t count) {
    for (int32_t row = 0; row < rows.count(); ++row) add(rows.logits(row));
    read_count += count;
  }
  // Columns are summed one by one in the order of tokens (docs/numerics.md).
  void add(std::span<const float> row) {
    if (pooling != Pooling::mean || values.empty()) {
      values.insert(values.end(), row.begin(), row.end());
      return;
    }
    for (size_t i = 0; i < row.size(); ++i) values[i] += row[i];
  }
};

namespace {

// As many as a matrix is worth reading for; more only take memory.
constexpr size_t kRowCountGoal = 512;

// Divided by its length, which is computed in f64; zeros stay zeros.
void normalize(std::span<float> vector) {
  double squares = 0;
  for (const float value : vector) squares = std::fma(double(value), double(value), squares);
  if (squares == 0) return;
  const double length = std::sqrt(squares);
  for (float& value : vector) value = float(double(value) / length);
}

}  // namespace

Embedder::Embedder(Engine* engine, const EmbedderOptions& options)
    : engine_(engine), pooling_(engine->options().pooling.value()) {
  const bool is_one_vector = pooling_ != Pooling::none && pooling_ != Pooling::rank;
  normalizes_ = options.normalizes.value_or(is_one_vector);
  truncates_ = options.truncates;
}

int32_t Embedder::width() const {
  return engine_->runner().plans().step.logits.width;
}

Result<std::vector<Token>> Embedder::tokens_of(std::string_view text) const {
  if (engine_->tokenizer() == nullptr) {
    return fail(ErrorCode::unsupported, "{}: expected a vocabulary, found none",
                engine_->file().name());
  }
  CAIRN_TRY(engine_->tokenizer()->check_text(text));
  return engine_->tokenizer()->encode(text, {.add_special = true});
}

Result<std::vector<Token>> Embedder::tokens_of_pair(std::string_view question,
                                                    std::string_view answer) const {
  CAIRN_TRY(std::vector<Token> tokens, tokens_of(question));
  // Else a truncated pair would hold nothing of the answer but its end token.
  const int64_t question_max = int64_t(engine_->options().context_tokens) - 2;
  if (int64_t(tokens.size()) > question_max) {
    return fail(ErrorCode::invalid_argument, "question: expected at most {} tokens, found {}",
                std::max(question_max, int64_t(0)), tokens.size());
  }
  CAIRN_TRY(const bool separates,
            engine_->file().fields().get_or<bool>("tokenizer.ggml.add_sep_token", false));
  CAIRN_TRY(const std::string_view kind,
            engine_->file().fields().get_or<std::string_view>("tokenizer.ggml.model", ""));
  const tokenize::SpecialTokens& ids = engine_->tokenizer()->special_ids();
  // WordPiece has one separator between the two, which already stands behind the first.
  if (separates && kind != "bert" && ids.sep) tokens.push_back(*ids.sep);
  CAIRN_TRY(std::vector<Token> second, tokens_of(answer));
  const std::vector<Token> nothing = engine_->tokenizer()->encode("", {.add_special = true});
  const bool begins_specially =
      !nothing.empty() && (ids.cls == nothing[0] || ids.bos == nothing[0]);
  tokens.insert(tokens.end(), second.begin() + (begins_specially ? 1 : 0), second.end());
  return tokens;
}

Result<std::span<const Token>> Embedder::checked(std::span<const Token> text, size_t index,
                                                 std::vector<Token>& place) const {
  if (text.empty()) {
    return fail(ErrorCode::invalid_argument, "text {}: expected at least a token, found none",
                index + 1);
  }
  for (const Token token : text) {
    if (index_of(token) >= 0 && index_of(token) < engine_->size().vocabulary_count) continue;
    return fail(ErrorCode::invalid_argument, "text {}: expected tokens from 0 to {}, found {}",
                index + 1, engine_->size().vocabulary_count - 1, index_of(token));
  }
  const size_t context = size_t(engine_->options().context_tokens);
  if (text.size() <= context) return text;
  if (!truncates_) {
    return fail(ErrorCode::invalid_argument, "text {}: expected at most {} tokens, found {}",
                index + 1, context, text.size());
  }
  place.assign(text.begin(), text.begin() + std::ptrdiff_t(context));
  if (engine_->tokenizer() != nullptr) {
    const tokenize::SpecialTokens& ids = engine_->tokenizer()->special_ids();
    if (ids.sep == text.back() || ids.eos == text.back()) place.back() = text.back();
  }
  return std::span<const Token>(place);
}

// A text with more tokens than a step has rows: each reads those before it from memory.
Status Embedder::read_in_pieces(std::span<const Token> text, Pooled& pooled) {
  CHECK(engine_->is_causal());
  memory::Sequence sequence = engine_->memory().new_sequence();
  const size_t row_count_max = size_t(engine_->runner().row_count_max());
  while (!text.empty()) {
    const auto piece = text.first(std::min(row_count_max, text.size()));
    const std::vector<int32_t> outputs = pooled.wanted(int32_t(piece.size()));
    const StepItem item{.sequence = &sequence, .tokens = piece, .outputs = outputs};
    CAIRN_TRY(engine_->step({&item, 1}, [&](size_t, const StepOutputs& rows) {
      pooled.add(rows, int32_t(piece.size()));
      return int32_t(piece.size());
    }));
    text = text.subspan(piece.size());
  }
  return Ok{};
}

// As many whole texts as there is room for in a step; how many that were. Nothing of them stays in
// memory.
Result<size_t> Embedder::read_together(std::span<const std::span<const Token>> texts,
                                       std::span<Pooled> pooled) {
  const size_t row_goal = std::min(kRowCountGoal, size_t(engine_->runner().row_count_max()));
  size_t count = 0, row_count = 0;
  while (count < texts.size() && (count == 0 || row_count + texts[count].size() <= row_goal)) {
    row_count += texts[count++].size();
  }
  std::vector<memory::Sequence> sequences;
  std::vector<std::vector<int32_t>> outputs;
  for (size_t i = 0; i < count; ++i) {
    sequences.push_back(engine_->memory().new_sequence());
    outputs.push_back(pooled[i].wanted(int32_t(texts[i].size())));
  }
  std::vector<StepItem> items;
  for (size_t i = 0; i < count; ++i) {
    items.push_back({.sequence = &sequences[i], .tokens = texts[i], .outputs = outputs[i]});
  }
  CAIRN_TRY(const StepReport report, engine_->step(items, [&](size_t i, const StepOutputs& rows) {
    pooled[i].add(rows, int32_t(texts[i].size()));
    return 0;
  }));
  return report.item_count;
}

Status Embedder::check(std::span<const Token> text, size_t index) const {
  std::vector<Token> place;
  CAIRN_TRY(checked(text, index, place));
  return Ok{};
}

Result<std::vector<Embedding>> Embedder::embed(std::span<const std::vector<Token>> texts,
                                               size_t first_index) {
  std::deque<std::vector<Token>> places(texts.size());
  std::vector<std::span<const Token>> all;
  for (size_t i = 0; i < texts.size(); ++i) {
    CAIRN_TRY(const std::span<const Token> text, checked(texts[i], first_index + i, places[i]));
    all.push_back(text);
  }
  std::vector<Pooled> pooled;
  for (const auto text : all) {
    pooled.push_back({.pooling = pooling_, .token_count = int32_t(text.size())});
  }
  const size_t row_count_max = size_t(engine_->runner().row_count_max());
  for (size_t first = 0; first < all.size();) {
    if (all[first].size() > row_count_max) {
      CAIRN_TRY(read_in_pieces(all[first], pooled[first]));
      ++first;
      continue;
    }
    CAIRN_TRY(const size_t count,
              read_together(std::span(all).subspan(first), std::span(pooled).subspan(first)));
    first += count;
  }
  std::vector<Embedding> out;
  for (size_t i = 0; i < pooled.size(); ++i) {
    CAIRN_TRY(Embedding each, finish(std::move(pooled[i]), first_index + i));
    out.push_back(std::move(each));
  }
  return out;
}

Result<Embedding> Embedder::finish(Pooled pooled, size_t index) const {
  Embedding out{.values = std::move(pooled.values), .token_count = pooled.token_count};
  if (pooling_ == Pooling::mean) {
    for (float& value : out.values) value /= float(out.token_count);
  }
  for (const float value : out.values) {
    if (std::isfinite(value)) continue;
    return fail(ErrorCode::invalid_data, "text {}: expected finite numbers in its vector, found {}",
                index + 1, value);
  }
  if (!normalizes_) return out;
  const size_t width = size_t(this->width());
  for (size_t begin = 0; begin < out.values.size(); begin += width) {
    normalize(std::span(out.values).subspan(begin, width));
  }
  return out;
}

}  // namespace cairn
