// A token of each text in every step.
#include "measure/own_text.h"

#include "memory/memory.h"
#include "sample/sampler.h"

namespace cairn::measure {

namespace {

// As texts of this model begin: with its first token, or with the one that ends the text before.
Token first_token(const tokenize::Tokenizer& tokenizer) {
  const auto& ids = tokenizer.special_ids();
  return ids.bos.value_or(ids.eos.value_or(Token(0)));
}

}  // namespace

Result<std::vector<Token>> write_own_text(
    Engine& engine, const OwnTextShape& shape,
    const std::function<bool(int64_t done, int64_t total)>& on_progress) {
  const size_t length = size_t(shape.length), count = size_t(shape.count);
  std::vector<Token> text(length * count, first_token(*engine.tokenizer()));
  std::vector<memory::Sequence> sequences;
  std::vector<sample::Sampler> samplers;
  for (size_t i = 0; i < count; ++i) {
    sequences.push_back(engine.memory().new_sequence());
    samplers.emplace_back(sample::SamplingParams{
        .temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = shape.seed + i});
  }
  const int32_t outputs[] = {0};
  for (size_t at = 0; at + 1 < length; ++at) {
    std::vector<StepItem> items;
    for (size_t i = 0; i < count; ++i) {
      items.push_back({.sequence = &sequences[i],
                       .tokens = std::span(text).subspan(i * length + at, 1),
                       .outputs = outputs,
                       .is_answer = at > 0});
    }
    Status sampled = Ok{};
    CAIRN_TRY(engine.step(items, [&](size_t item, const StepOutputs& rows) {
      if (!sampled) return 1;
      Result<Token> next = samplers[item].sample(rows.logits(0), int32_t(at) + 1);
      if (next) {
        text[item * length + at + 1] = *next;
      } else {
        sampled = std::move(next).error();
      }
      return 1;
    }));
    CAIRN_TRY(std::move(sampled));
    if (on_progress && !on_progress(int64_t(at) + 2, int64_t(length))) {
      return fail(ErrorCode::cancelled, "text of the model's own: it was ended");
    }
  }
  return text;
}

}  // namespace cairn::measure
