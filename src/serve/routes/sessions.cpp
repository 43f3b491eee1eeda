// /v1/sessions: all that computes nothing.
#include <chrono>
#include <random>
#include <utility>

#include "serve/kept_table.h"
#include "serve/openai/chat_request.h"
#include "serve/routes/session_path.h"
#include "session/transcript.h"

namespace cairn::serve {

namespace {

using Made = Checked<std::unique_ptr<http::Reply>>;

std::string new_session_name() {
  std::random_device device;
  return fmt::format("sess-{:08x}{:08x}{:08x}", device(), device(), device());
}

Checked<std::string> read_name(const Body& body, std::string_view field) {
  const std::string_view name = body.text(field).value_or("");
  if (is_session_name(name)) return std::string(name);
  return refuse_field(field,
                      "expected letters, digits, \".\", \"_\" and \"-\", the first a letter or "
                      "digit, found others");
}

Checked<std::string> read_id(const Body& body) {
  if (body.find("id") == nullptr) return new_session_name();
  return read_name(body, "id");
}

SessionState new_state(const RouteContext& context, const http::Request& request, std::string id) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {.id = std::move(id),
          .owner = request.owner,
          .model = context.model.name,
          .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
          .vocabulary = context.model.engine().tokenizer()->digest()};
}

// A conversation that was saved: its answers' tokens, and what the last one goes on by.
Checked<Ok> take_saved(const Body& body, std::vector<chat::Message> messages,
                       const ServedModel& model, SessionState& state) {
  json::Value saved = json::Value::object();
  saved["messages"] = json::Value::array();
  for (const std::string_view name : {"vocabulary", "sampling"}) {
    if (const json::Value* const found = body.find(name)) saved[name] = *found;
  }
  Result<session::Transcript> transcript = session::read_transcript("session", saved);
  if (!transcript) return refusal_of(transcript.error(), "sampling");
  for (size_t index = 0; index < messages.size(); ++index) {
    Result<std::vector<Token>> tokens = session::read_token_ids(
        body.find("messages")->items()[index], fmt::format("messages[{}]", index));
    if (!tokens) return refusal_of(tokens.error(), "messages");
    messages[index].tokens = std::move(tokens).value();
  }
  const tokenize::Tokenizer& tokenizer = *model.engine().tokenizer();
  const Status taken = session::take_tokens(messages, transcript->vocabulary, tokenizer, "session");
  if (!taken) return refusal_of(taken.error(), "messages");
  const bool knows_ids = transcript->vocabulary == tokenizer.digest();
  state.seed = transcript->seed.value_or(0);
  state.dialogue.replace(session::MessageList(std::move(messages)),
                         knows_ids ? std::move(transcript->sampler) : sample::SamplerState());
  return Ok{};
}

std::unique_ptr<http::Reply> saved_json(const RouteContext& context, const SessionState& state,
                                        const json::Value& json,
                                        std::vector<http::Header> headers = {}) {
  return saved_reply(context, state.owner, state.id,
                     std::make_unique<http::WholeReply>(
                         http::ReplyHead{.headers = std::move(headers)}, json::to_text(json)));
}

// Of one that was not there before.
std::unique_ptr<http::Reply> new_json(const RouteContext& context, const SessionState& state,
                                      const json::Value& json) {
  return saved_json(context, state, json, {kept_header(state.id)});
}

std::unique_ptr<http::Reply> state_reply(const RouteContext& context, const SessionState& state) {
  return saved_json(context, state, session_json(state, *context.sessions));
}

// The session, and what going on in it costs.
Made priced_reply(const RouteContext& context, const http::Request& request,
                  const SessionState& state) {
  json::Value json = session_json(state, *context.sessions);
  CAIRN_TRY(json["memory"], price_json(state, context.model, request.tenant));
  return saved_json(context, state, json);
}

Made create(const RouteContext& context, const http::Request& request) {
  CAIRN_TRY(const Body body, Body::read(request.body, kSession));
  CAIRN_TRY(check_model(context));
  CAIRN_TRY(std::string id, read_id(body));
  SessionState state = new_state(context, request, std::move(id));
  CAIRN_TRY(std::vector<chat::Message> messages,
            openai::read_messages(body, knows_developer(context.model)));
  CAIRN_TRY(take_saved(body, std::move(messages), context.model, state));
  CAIRN_TRY(context.sessions->add(state));
  return new_json(context, state, session_json(state, *context.sessions));
}

Made append(const RouteContext& context, const http::Request& request) {
  CAIRN_TRY(const Body body, Body::read(request.body, kSessionMessages));
  CAIRN_TRY(const auto change, change_session(context, request));
  CAIRN_TRY(std::vector<chat::Message> messages,
            openai::read_messages(body, knows_developer(context.model)));
  SessionState state = change->state();
  for (chat::Message& message : messages) state.dialogue.add(std::move(message));
  CAIRN_TRY(change->reserve(state));
  change->commit(state);
  return state_reply(context, state);
}

Made snapshot(const RouteContext& context, const http::Request& request) {
  CAIRN_TRY(const Body body, Body::read(request.body, kSessionName));
  CAIRN_TRY(std::string name, read_name(body, "name"));
  CAIRN_TRY(const auto change, change_session(context, request));
  SessionState state = change->state();
  if (state.snapshot(name) != nullptr) {
    return refuse_field("name", "expected a new name, found {} again", name);
  }
  state.snapshots.push_back({.name = std::move(name),
                             .messages = state.dialogue.messages(),
                             .sampler = state.dialogue.sampler()});
  CAIRN_TRY(change->reserve(state));
  change->commit(state);
  return priced_reply(context, request, state);
}

// As `keep`, `turns` or `snapshot` say: at most one of them.
Checked<Ok> go_back(const Body& body, SessionState& state) {
  const std::optional<int64_t> keep = body.integer("keep"), turns = body.integer("turns");
  const std::optional<std::string_view> name = body.text("snapshot");
  if (int(keep.has_value()) + int(turns.has_value()) + int(name.has_value()) > 1) {
    return refuse_field("keep", "expected one of keep, turns and snapshot, found several");
  }
  if (name) {
    const session::Branch* const found = state.snapshot(*name);
    if (found == nullptr) return refuse_field("snapshot", "expected one that there is, found none");
    state.dialogue.replace(found->messages, found->sampler);
  }
  Status gone = Ok{};
  if (keep) gone = state.dialogue.keep(size_t(*keep));
  if (turns) gone = state.dialogue.rewind(int32_t(*turns));
  if (!gone) return refusal_of(gone.error(), keep ? "keep" : "turns");
  return Ok{};
}

Made rewind(const RouteContext& context, const http::Request& request) {
  CAIRN_TRY(const Body body, Body::read(request.body, kSessionRewind));
  if (!body.find("keep") && !body.find("turns") && !body.find("snapshot")) {
    return refuse_field("keep", "expected one of keep, turns and snapshot, found none");
  }
  CAIRN_TRY(const auto change, change_session(context, request));
  SessionState state = change->state();
  CAIRN_TRY(go_back(body, state));
  // A snapshot may be longer than what was said since.
  CAIRN_TRY(change->reserve(state));
  CAIRN_TRY(std::unique_ptr<http::Reply> reply, priced_reply(context, request, state));
  change->commit(std::move(state));
  return reply;
}

Made fork(const RouteContext& context, const http::Request& request) {
  CAIRN_TRY(const Body body, Body::read(request.body, kSessionFork));
  CAIRN_TRY(std::string id, read_id(body));
  const std::string name = session_name(request);
  const SessionTable::State from = context.sessions->find(request.owner, name);
  if (from == nullptr) return context.sessions->unknown(request.owner, name);
  SessionState at = *from;
  CAIRN_TRY(go_back(body, at));
  SessionState state = new_state(context, request, std::move(id));
  state.model = at.model;
  state.vocabulary = at.vocabulary;
  state.seed = at.seed;
  state.form = at.form;
  state.dialogue.replace(at.dialogue.messages(), at.dialogue.sampler());
  CAIRN_TRY(json::Value price, price_json(state, context.model, request.tenant));
  CAIRN_TRY(context.sessions->add(state));
  json::Value json = session_json(state, *context.sessions);
  json["forked_from"] = from->id;
  json["shared_messages"] = state.dialogue.messages().size();
  json["memory"] = std::move(price);
  return new_json(context, state, json);
}

Made change_branch(const RouteContext& context, const http::Request& request, bool is_new) {
  CAIRN_TRY(const Body body, Body::read(request.body, kSessionName));
  CAIRN_TRY(const std::string name, read_name(body, "name"));
  CAIRN_TRY(const auto change, change_session(context, request));
  SessionState state = change->state();
  const Status gone = is_new ? state.dialogue.fork(name) : state.dialogue.switch_to(name);
  if (!gone) return refusal_of(gone.error(), "name");
  CAIRN_TRY(change->reserve(state));
  CAIRN_TRY(std::unique_ptr<http::Reply> reply, priced_reply(context, request, state));
  change->commit(std::move(state));
  return reply;
}

}  // namespace

Checked<std::unique_ptr<SessionTable::Change>> change_session(const RouteContext& context,
                                                              const http::Request& request) {
  CAIRN_TRY(check_model(context));
  return context.sessions->change(request.owner, session_name(request));
}

std::unique_ptr<http::Reply> get_sessions(const ServerContext& context, http::Request& request) {
  json::Value list = json::Value::array();
  for (const SessionTable::State& state : context.sessions->list(request.owner)) {
    list.push_back(session_json(*state, *context.sessions));
  }
  return json_reply(json::to_text({{"object", "list"}, {"data", std::move(list)}}));
}

std::unique_ptr<http::Reply> post_session(const RouteContext& context, http::Request& request) {
  return reply_of(create(context, request));
}

std::unique_ptr<http::Reply> get_session(const ServerContext& context, http::Request& request) {
  const std::string id = session_name(request);
  const SessionTable::State state = context.sessions->find(request.owner, id);
  if (state == nullptr) return refusal_reply(context.sessions->unknown(request.owner, id));
  return json_reply(json::to_text(whole_session_json(*state, *context.sessions)));
}

std::unique_ptr<http::Reply> delete_session(const ServerContext& context, http::Request& request) {
  const std::string id = session_name(request);
  if (!context.sessions->remove(request.owner, id)) {
    return refusal_reply(context.sessions->unknown(request.owner, id));
  }
  return saved_reply(
      context, request.owner, id,
      json_reply(json::to_text({{"id", id}, {"object", "session.deleted"}, {"deleted", true}})));
}

std::unique_ptr<http::Reply> post_session_stop(const ServerContext& context,
                                               http::Request& request) {
  const Checked<Body> body = Body::read(request.body, Endpoint{});
  if (!body) return refusal_reply(body.error());
  const std::string id = session_name(request);
  if (context.sessions->find(request.owner, id) == nullptr) {
    return refusal_reply(context.sessions->unknown(request.owner, id));
  }
  const bool is_stopped = context.sessions->stop(request.owner, id);
  return json_reply(json::to_text({{"id", id}, {"stopped", is_stopped}}));
}

std::unique_ptr<http::Reply> post_session_messages(const RouteContext& context,
                                                   http::Request& request) {
  return reply_of(append(context, request));
}

std::unique_ptr<http::Reply> post_session_snapshot(const RouteContext& context,
                                                   http::Request& request) {
  return reply_of(snapshot(context, request));
}

std::unique_ptr<http::Reply> post_session_rewind(const RouteContext& context,
                                                 http::Request& request) {
  return reply_of(rewind(context, request));
}

std::unique_ptr<http::Reply> post_session_fork(const RouteContext& context,
                                               http::Request& request) {
  return reply_of(fork(context, request));
}

std::unique_ptr<http::Reply> post_session_branch(const RouteContext& context,
                                                 http::Request& request) {
  return reply_of(change_branch(context, request, true));
}

std::unique_ptr<http::Reply> post_session_switch(const RouteContext& context,
                                                 http::Request& request) {
  return reply_of(change_branch(context, request, false));
}

}  // namespace cairn::serve
