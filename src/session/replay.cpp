// The request is put together from the receipt, as ChatSession does it from a conversation.
#include "session/replay.h"

#include <memory>
#include <utility>

#include "chat/tools.h"
#include "session/completion.h"

namespace cairn::session {

void take_options(const Receipt& receipt, EngineOptions& options) {
  options.numerics = receipt.sources.numerics;
  options.key_type = receipt.sources.key_type;
  options.value_type = receipt.sources.value_type;
  options.context_tokens = receipt.context_tokens;
  options.context_policy = receipt.context_policy;
  options.shift_keep = receipt.shift_keep;
}

Result<Selection> select_adapters(Engine& engine, const ReceiptSources& sources) {
  const std::span<const AdapterUse> loaded = engine.adapters();
  const std::vector<AdapterSource> known = engine.adapter_sources(loaded);
  std::vector<AdapterUse> uses;
  for (const AdapterSource& source : sources.adapters) {
    for (size_t i = 0; i < known.size(); ++i) {
      if (known[i].adapter != source.adapter) continue;
      uses.push_back({.name = loaded[i].name, .scale = source.scale});
      break;
    }
  }
  return engine.select(uses);
}

Result<Receipt> replay(Engine& engine, const Receipt& receipt,
                       const std::function<void(int32_t tokens)>& on_token) {
  CAIRN_TRY(Selection selection, select_adapters(engine, receipt.sources));
  Receipt none{.sources = ReceiptSources::of(engine, selection)};
  if (difference_of(receipt.sources, none.sources)) return none;
  CAIRN_TRY(sample::check_logit_bias(receipt.sampling, engine.size().vocabulary_count));

  static const chat::ChatFormat plain;
  const chat::ChatFormat& format = receipt.is_raw ? plain : engine.chat_format();
  std::vector<chat::Tool> tools;
  if (!receipt.form.tools.empty()) {
    CAIRN_TRY(tools, chat::read_tools(receipt.form.tools));
  }
  CAIRN_TRY(
      const CallMatchers calls,
      make_call_matchers(engine, format, tools, receipt.form.tool_choice, receipt.form.calls_end));
  CAIRN_TRY(const std::unique_ptr<grammar::Matcher> matcher,
            make_matcher(receipt.form.constraint, engine));
  grammar::Matcher* const of_calls = calls.matcher(receipt.form.is_to_results);

  Lane lane(&engine);
  lane.select(selection);
  sample::Sampler sampler(receipt.sampling, engine.tokenizer());
  sample::SamplerState state;
  for (const auto& step : receipt.sampler) state.record(step.position, step.token, step.memory);
  sampler.set_state(std::move(state));
  const std::span<const Token> prompt = receipt.prompt;
  AnswerRequest request{.prompt = prompt,
                        .message_starts = receipt.message_starts,
                        .answer_prefix = prompt.last(size_t(receipt.answer_prefix)),
                        .token_count_max = int32_t(receipt.choices.size()),
                        .matcher = of_calls != nullptr ? of_calls : matcher.get(),
                        .constrains_calls = of_calls != nullptr,
                        .format = receipt.is_raw ? nullptr : &format,
                        .tools = tools,
                        .stop = receipt.stop,
                        .prompt_end = receipt.prompt_end,
                        .reasoning_tokens_max = receipt.reasoning_tokens_max};
  ReceiptDraft draft(engine, selection, request, sampler, receipt.form);
  request.choices = &draft.choices;
  CAIRN_TRY(const std::unique_ptr<Completion> completion,
            Completion::begin(&engine, &lane, request, std::move(sampler)));
  const AnswerHooks hooks{.on_text = {}, .on_other = {}, .on_prompt = {}, .wants_stop = [&] {
                            if (on_token) on_token(int32_t(draft.choices.choices().size()));
                            return false;
                          }};
  CAIRN_TRY(drive(engine, *completion, hooks));
  CAIRN_TRY(const Answer answer, completion->finish());
  if (answer.finish == FinishReason::memory) {
    return fail(ErrorCode::memory_full, "{}", answer.cut_by);
  }
  return std::move(draft).finish(answer.finish);
}

}  // namespace cairn::session
