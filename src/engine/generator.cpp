// Reading prompts in steps, and single tokens after them.
#include "engine/generator.h"

#include <algorithm>

namespace cairn {

namespace {

// How many earlier recurrent states a timeline keeps to be rewound to; older ones go first.
constexpr size_t kAnchorCountMax = 8;

int32_t common_prefix(std::span<const Token> a, std::span<const Token> b) {
  const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return int32_t(end - a.begin());
}

}  // namespace

Generator::Generator(Engine* engine)
    : engine_(engine), sequence_(engine->memory().new_sequence()) {}

int32_t Generator::room() const {
  return engine_->options().context_tokens - sequence_.length();
}

std::span<const float> Generator::logits() const {
  return engine_->runner().logits(0);
}

Result<PromptReport> Generator::read(std::span<const Token> prompt,
                                     const std::function<bool(int32_t, int32_t)>& on_progress) {
  if (prompt.empty()) {
    return fail(ErrorCode::invalid_argument, "prompt: expected at least one token, found none");
  }
  for (const Token token : prompt) {
    const int32_t count = engine_->size().vocabulary_count;
    if (index_of(token) < 0 || index_of(token) >= count) {
      return fail(ErrorCode::invalid_argument, "prompt: expected token ids below {}, found {}",
                  count, index_of(token));
    }
  }
  const int32_t prompt_tokens = int32_t(prompt.size());
  if (prompt_tokens > engine_->options().context_tokens) {
    return fail(ErrorCode::no_room, "prompt: expected at most {} tokens (the context), found {}",
                engine_->options().context_tokens, prompt_tokens);
  }
  // The last token is always computed: what follows it is what the caller wants.
  const int32_t shared = std::min(common_prefix(sequence_.tokens(), prompt), prompt_tokens - 1);
  memory::Memory& memory = engine_->memory();
  PromptReport report{.prompt_tokens = prompt_tokens, .plan = memory.plan(sequence_, shared)};
  report.reused_tokens = report.plan.resume;
  report.computed_tokens = prompt_tokens - report.reused_tokens;
  CAIRN_TRY(sequence_, memory.at(sequence_, shared));
  const int32_t step = engine_->runner().row_count_max();
  while (sequence_.length() < prompt_tokens) {
    const int32_t begin = sequence_.length();
    int32_t count = std::min(step, prompt_tokens - begin);
    // A last step of one token alone could not keep the state before it on its way.
    if (prompt_tokens - begin - count == 1 && count > 1) --count;
    const bool last_step = begin + count == prompt_tokens;
    CAIRN_TRY(compute(prompt.subspan(size_t(begin), size_t(count)), last_step));
    if (on_progress && !on_progress(sequence_.length(), prompt_tokens)) {
      return fail(ErrorCode::cancelled, "prompt: stopped after {} of {} tokens", sequence_.length(),
                  prompt_tokens);
    }
  }
  return report;
}

// Where there is no room, earlier states go first.
Result<memory::Transaction> Generator::begin(std::span<const Token> tokens,
                                             std::span<const int32_t> captures) {
  memory::Memory& memory = engine_->memory();
  Result<memory::Transaction> begun =
      memory.begin(sequence_, {.tokens = tokens,
                               .captures = captures,
                               .capture_kind = memory::AnchorKind::prompt_end});
  if (begun || begun.error().code != ErrorCode::no_room) return begun;
  if (sequence_.anchors().empty()) return begun;
  CAIRN_TRY(limit_anchors(0));
  return memory.begin(sequence_, {.tokens = tokens});
}

Status Generator::limit_anchors(size_t count_max) {
  while (sequence_.anchors().size() > count_max) {
    CAIRN_TRY(engine_->memory().drop_anchor(sequence_, 0));
  }
  return Ok{};
}

// The state before a prompt's last token is kept, so that the same prompt can be continued anew.
Status Generator::compute(std::span<const Token> tokens, bool last_step) {
  memory::Memory& memory = engine_->memory();
  const int32_t before_last = int32_t(tokens.size()) - 1;
  std::span<const int32_t> captures;
  if (last_step && before_last > 0) captures = {&before_last, 1};
  if (last_step && before_last == 0) {
    CAIRN_TRY(memory.keep_anchor(sequence_, memory::AnchorKind::prompt_end));
  }
  CAIRN_TRY(memory::Transaction transaction, begin(tokens, captures));
  const int32_t outputs[] = {before_last};
  const BatchPart part{.transaction = &transaction, .outputs = outputs};
  engine_->runner().run({&part, 1});
  transaction.commit(int32_t(tokens.size()));
  return limit_anchors(kAnchorCountMax);
}

Result<Token> Generator::sample(sample::Sampler& sampler) {
  return sampler.sample(logits(), sequence_.length());
}

Status Generator::advance(Token token) {
  return compute({&token, 1}, false);
}

}  // namespace cairn
