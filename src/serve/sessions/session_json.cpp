// Objects for clients.
#include "serve/sessions/session_json.h"

#include <optional>
#include <utility>

#include "serve/routes/chat_order.h"
#include "session/memory_report.h"
#include "session/transcript.h"

namespace cairn::serve {

namespace {

json::Value lists_json(const std::vector<session::Branch>& lists) {
  json::Value all = json::Value::array();
  for (const session::Branch& list : lists) {
    all.push_back({{"name", list.name}, {"messages", list.messages.size()}});
  }
  return all;
}

// The prompt whose price is asked for: up to where the next message begins, where that is known.
Result<session::Prompt> prompt_of(const SessionState& state, const Engine& engine,
                                  const std::vector<chat::Message>& messages) {
  const auto encode = [&](std::span<const session::Message> all) -> Result<session::Prompt> {
    const ChatRequest request{.messages = {all.begin(), all.end()},
                              .tools = state.form.tools,
                              .reasons = state.form.reasons,
                              .variables = state.form.variables};
    Checked<ChatPrompt> made = encode_chat(engine, request);
    if (!made) return fail(ErrorCode::invalid_argument, "{}", made.error().message);
    return std::move(made->prompt);
  };
  CAIRN_TRY(std::optional<session::Prompt> behind, session::prompt_behind(messages, encode));
  if (behind) return *std::move(behind);
  return encode(messages);
}

}  // namespace

json::Value session_json(const SessionState& state, const SessionTable& table) {
  const session::Dialogue& dialogue = state.dialogue;
  json::Value json = {{"id", state.id},
                      {"object", "session"},
                      {"created", state.created},
                      {"model", state.model},
                      {"survives_restart", table.is_stored()},
                      {"message_count", dialogue.messages().size()},
                      {"turns", dialogue.turn_count()},
                      {"branch", dialogue.branches()[dialogue.active_branch()].name},
                      {"branches", lists_json(dialogue.branches())},
                      {"snapshots", lists_json(state.snapshots)},
                      {"bytes", bytes_of(state)}};
  if (const auto end = table.expires_at(state.owner, state.id)) json["expires_at"] = *end;
  return json;
}

json::Value whole_session_json(const SessionState& state, const SessionTable& table) {
  json::Value json = session_json(state, table);
  const json::Value transcript =
      session::transcript_json({.messages = state.dialogue.messages().copy(),
                                .vocabulary = state.vocabulary,
                                .seed = state.seed,
                                .sampler = state.dialogue.sampler()});
  for (const json::Value::Member& member : transcript.members()) json[member.key] = member.value;
  return json;
}

Checked<std::vector<chat::Message>> messages_of(const SessionState& state,
                                                const session::MessageList& list,
                                                const ServedModel& model) {
  std::vector<chat::Message> messages = list.copy();
  const Status taken =
      session::take_tokens(messages, state.vocabulary, *model.engine().tokenizer(), state.id);
  if (!taken) return refusal_of(taken.error(), "session");
  return messages;
}

Checked<json::Value> price_json(const SessionState& state, const ServedModel& model,
                                uint64_t tenant) {
  session::PricedPrompt priced;
  bool is_on_disk = false;
  if (!state.dialogue.messages().empty()) {
    CAIRN_TRY(const std::vector<chat::Message> messages,
              messages_of(state, state.dialogue.messages(), model));
    Result<session::Prompt> prompt = prompt_of(state, model.engine(), messages);
    if (!prompt) return refusal_of(prompt.error(), "messages", "template_budget");
    model.service->ask([&](Engine& engine) {
      priced = session::price(engine, prompt->tokens, tenant, false);
      is_on_disk = priced.stored.has_all(int32_t(prompt->tokens.size()));
    });
  }
  json::Value json = {{"reused", priced.plan.resume},
                      {"recomputed", priced.plan.forward_tokens},
                      {"replayed", priced.plan.recurrence_steps},
                      {"on_disk", is_on_disk}};
  if (!priced.plan.reason.empty()) json["reason"] = priced.plan.reason;
  return json;
}

}  // namespace cairn::serve
