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
  options.program = {.skipped_layers = receipt.sources.program.skipped_layers,
                     .expert_count = receipt.sources.program.expert_used_count};
  options.context_tokens = receipt.context_tokens;
  options.context_policy = receipt.context_policy;
  options.shift_keep = receipt.shift_keep;
}

std::vector<AdapterUse> adapters_of(const Engine& engine, const ReceiptSources& sources) {
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
  return uses;
}

Result<AnswerOrder> make_replay_order(const Engine& engine, const Receipt& receipt,
                                      const TenantGrammars& compiled) {
  CAIRN_TRY(sample::check_logit_bias(receipt.sampling, engine.size().vocabulary_count));
  AnswerOrder order{.prompt = receipt.prompt,
                    .message_starts = receipt.message_starts,
                    .token_count_max = int32_t(receipt.choices.size()),
                    .stop = receipt.stop,
                    .prompt_end = receipt.prompt_end,
                    .reasoning_tokens_max = receipt.reasoning_tokens_max,
                    .sampling = receipt.sampling,
                    .adapters = adapters_of(engine, receipt.sources),
                    .receipt = receipt.form,
                    .computes_all = true};
  const auto prefix = std::span(receipt.prompt).last(size_t(receipt.answer_prefix));
  order.answer_prefix.assign(prefix.begin(), prefix.end());
  for (const auto& step : receipt.sampler) {
    order.sampler.record(step.position, step.token, step.memory);
  }
  if (!receipt.is_raw) order.format = &engine.chat_format();
  if (!receipt.form.tools.empty()) {
    CAIRN_TRY(order.tools, chat::read_tools(receipt.form.tools));
  }
  static const chat::ChatFormat plain;
  CAIRN_TRY(CallMatchers calls,
            make_call_matchers(engine, receipt.is_raw ? plain : engine.chat_format(), order.tools,
                               {.choice = receipt.form.tool_choice,
                                .prompt_end = receipt.form.calls_end,
                                .is_single = receipt.form.calls_once},
                               receipt.is_raw ? TenantGrammars() : compiled));
  const bool is_to_results = receipt.form.is_to_results && calls.to_results != nullptr;
  order.matcher = std::move(is_to_results ? calls.to_results : calls.to_people);
  order.constrains_calls = order.matcher != nullptr;
  if (order.matcher == nullptr) {
    CAIRN_TRY(order.matcher, make_matcher(receipt.form.constraint, engine.text(), compiled));
  }
  return order;
}

Result<Receipt> replay(Engine& engine, const Receipt& receipt,
                       const std::function<void(int32_t tokens)>& on_token) {
  CAIRN_TRY(Selection selection, engine.select(adapters_of(engine, receipt.sources)));
  Receipt none{.sources = ReceiptSources::of(engine, selection.uses())};
  if (difference_of(receipt.sources, none.sources)) return none;
  CAIRN_TRY(const AnswerOrder order, make_replay_order(engine, receipt));
  Lane lane(&engine);
  lane.compute_all();
  lane.select(selection);
  sample::Sampler sampler(order.sampling, engine.tokenizer());
  sampler.set_state(order.sampler);
  AnswerRequest request = request_of(order);
  ReceiptDraft draft(engine, selection, request, sampler, receipt.form);
  request.choices = &draft.choices;
  CAIRN_TRY(const std::unique_ptr<Completion> completion,
            Completion::begin(engine.tokenizer(), &lane, request, std::move(sampler)));
  const AnswerHooks hooks{.on_text = {}, .on_other = {}, .on_prompt = {}, .wants_stop = [&] {
                            if (on_token) on_token(int32_t(draft.choices.choices().size()));
                            return false;
                          }};
  CAIRN_TRY(drive(engine, lane, *completion, hooks));
  CAIRN_TRY(const Answer answer, completion->finish());
  if (answer.finish == FinishReason::memory) {
    return fail(ErrorCode::memory_full, "{}", answer.cut_by);
  }
  return std::move(draft).finish(answer.finish);
}

}  // namespace cairn::session
