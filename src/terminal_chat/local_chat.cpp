// Questions to the session and the engine.
#include "terminal_chat/local_chat.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/quantities.h"
#include "session/read_ahead.h"
#include "session/receipt_text.h"
#include "terminal_chat/adapter_choice.h"
#include "terminal_chat/memory_map.h"

namespace cairn::terminal_chat {

std::string LocalChat::greeting() const {
  return fmt::format("{}: {} ({} million parameters)", engine_->file().name(),
                     engine_->architecture(), (engine_->parameter_count() + 500000) / 1000000);
}

// What the next prompt will begin with is read meanwhile. Where that fails the prompt will say why.
void LocalChat::begin_pause() {
  if (service_ == nullptr) return;
  Result<session::PromptBeginning> beginning = session_->next_beginning();
  if (!beginning || beginning->tokens.empty()) return;
  ahead_ =
      service_->submit(std::make_unique<session::ReadAhead>(engine_, std::move(beginning).value()),
                       {.is_idle = true});
  service_->unlock();
}

void LocalChat::end_pause() {
  if (!ahead_) return;
  service_->cancel(*ahead_);
  service_->lock();
  ahead_.reset();
}

Status LocalChat::ask_session(const Ask& ask) {
  switch (ask.kind) {
    case Ask::Kind::message:
      return session_->say(ask.text);
    case Ask::Kind::results:
      return session_->give_results(ask.results);
    case Ask::Kind::regenerate:
      return session_->regenerate();
    case Ask::Kind::go_on:
      return session_->continue_answer();
    case Ask::Kind::edit:
      return session_->edit(ask.text);
  }
  return Ok{};
}

Result<ContextShift> LocalChat::begin(const Ask& ask) {
  CAIRN_TRY(ask_session(ask));
  const PromptReport& prompt = session_->completion().prompt();
  return ContextShift{.left_out_tokens = prompt.left_out_tokens,
                      .left_out_turns = prompt.left_out_turns,
                      .read_tokens = prompt.computed_tokens};
}

Status LocalChat::write_receipt(const std::string& path) {
  if (!session_->receipt()) return Ok{};
  return session::write_receipt(path, *session_->receipt());
}

Result<std::string> LocalChat::json_of(const session::Answer& answer) {
  const Lane& lane = session_->lane();
  return answer_json(answer,
                     {.model = engine_->file().name(),
                      .architecture = engine_->architecture(),
                      .sampling = session_->sampling(),
                      .memory = engine_->memory().usage(),
                      .used_tokens = lane.sequence().length(),
                      .free_tokens = lane.room(),
                      .next_shift = lane.next_shift()},
                     *engine_->tokenizer());
}

std::string LocalChat::figures(Figures figures, const session::Answer& answer) {
  const memory::Usage usage = engine_->memory().usage();
  if (figures == Figures::brief) return brief_line(answer, usage);
  return statistics_line(answer, usage,
                         {.used_tokens = session_->lane().sequence().length(),
                          .free_tokens = session_->lane().room(),
                          .weight_bytes = weight_bytes(engine_->file())});
}

Status LocalChat::set_system(std::string_view text) {
  session_->set_system(text);
  return Ok{};
}

Result<std::string> LocalChat::adapters(std::string_view uses) {
  if (!uses.empty()) {
    CAIRN_TRY(const std::vector<AdapterUse> parsed, parse_adapter_uses(uses));
    CAIRN_TRY(session_->choose_adapters(parsed));
  }
  std::string lines = show_adapters(engine_->adapters(), session_->lane().selection());
  if (engine_->adapters().empty()) return lines;
  const Runner& runner = engine_->runner();
  if (!lines.ends_with('\n')) lines += '\n';
  lines += fmt::format("plans: {} selections, {}", runner.variant_count(),
                       show_bytes(runner.plan_bytes()));
  return lines;
}

Result<std::string> LocalChat::memory_lines() {
  const memory::Sequence& sequence = session_->lane().sequence();
  std::string lines =
      memory_map(engine_->memory(), sequence) +
      fmt::format("{} tokens, room for {} more; all conversations: {}", sequence.length(),
                  session_->lane().room(), memory_line(engine_->memory().usage()));
  if (const SequenceStore* const store = engine_->sequence_store()) {
    lines += "\n" + store_line(*store);
  }
  if (const std::optional<ContextShift> shift = session_->lane().next_shift()) {
    lines += "\nwhen the context is full: " + shift_line(*shift);
  }
  return lines;
}

Status LocalChat::clear() {
  session_->clear();
  return Ok{};
}

}  // namespace cairn::terminal_chat
