// Commands become requests to the session's routes.
#include "terminal_chat/remote_chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "base/output_file.h"
#include "base/printable.h"
#include "session/transcript.h"
#include "terminal/interrupt.h"
#include "terminal_chat/event_reader.h"
#include "tls/server_trust.h"

namespace cairn::terminal_chat {

namespace {

constexpr json::Limits kReplyLimits{.bytes = size_t(256) << 20, .values = size_t(1) << 23};
constexpr int32_t kConnectTries = 120;
// Of a session in which an answer ends that was given up.
constexpr int32_t kBusyTries = 10;
// More than any branch has, so that a wrong number does no harm.
constexpr int64_t kMessagesMax = 1 << 16;
constexpr std::chrono::seconds kBetweenTries{1};

json::Value message_json(std::string_view role, std::string_view text) {
  return {{"role", role}, {"content", text}};
}

memory::ResumePlan plan_of(const json::Value& reply) {
  memory::ResumePlan plan;
  const json::Value* const memory = reply.find("memory");
  if (memory == nullptr) return plan;
  const auto number = [&](std::string_view key) {
    const json::Value* const found = memory->find(key);
    return found == nullptr ? 0 : int32_t(found->as_integer().value_or(0));
  };
  plan.resume = number("reused");
  plan.forward_tokens = number("recomputed");
  plan.recurrence_steps = number("replayed");
  plan.target = plan.resume + plan.forward_tokens;
  plan.reason = memory->text_at("reason").value_or("");
  if (!plan.reason.empty()) plan.limited_by = "server";
  return plan;
}

Status take_defaults(const json::Value& params, sample::SamplingParams& sampling) {
  for (const sample::SamplingField& field : sample::sampling_fields()) {
    const json::Value* const found = params.find(field.name);
    if (found == nullptr) continue;
    const std::optional<bool> flag = found->as_boolean();
    const double number = flag ? double(*flag) : found->as_real().value_or(0);
    CAIRN_TRY(set(sampling, field, number));
  }
  return Ok{};
}

json::Value biases_json(const sample::SamplingParams& sampling) {
  json::Value list = json::Value::array();
  for (const sample::LogitBias& bias : sampling.logit_bias) {
    json::Value pair = json::Value::array();
    pair.push_back(bias.text.empty() ? json::Value(index_of(bias.token)) : json::Value(bias.text));
    const bool is_finite = bias.bias > -1e30f && bias.bias < 1e30f;
    pair.push_back(is_finite ? json::Value(double(bias.bias)) : json::Value(false));
    list.push_back(std::move(pair));
  }
  return list;
}

Result<json::Value> read_json(std::string_view name, std::string_view text) {
  return json::read_value(name, text, kReplyLimits);
}

}  // namespace

Result<std::unique_ptr<RemoteChat>> RemoteChat::start(RemoteChatOptions options) {
  CAIRN_TRY(client::ServerUrl url, client::ServerUrl::parse(options.url));
  std::shared_ptr<const tls::ServerTrust> trust;
  if (url.is_secure) {
    CAIRN_TRY(trust, tls::ServerTrust::read(options.authority_path));
  } else if (!options.authority_path.empty()) {
    return fail(ErrorCode::invalid_argument, "--cacert: expected https://, found --server {}",
                options.url);
  }
  std::unique_ptr<RemoteChat> chat(new RemoteChat(
      client::HttpClient(std::move(url), options.key, std::move(trust)), std::move(options.chat)));
  CAIRN_TRY(chat->look_at_model(options.sampling));
  CAIRN_TRY(chat->make_session(json::Value::object()));
  return chat;
}

RemoteChat::~RemoteChat() {
  if (!id_.empty()) (void)client_.send("DELETE", path(), "", {});
}

std::string RemoteChat::path(std::string_view verb) const {
  return fmt::format("/v1/sessions/{}{}{}", id_, verb.empty() ? "" : "/", verb);
}

// A server that starts again is waited for, and the person is told; so is a session whose last
// request is not over yet.
Result<client::HttpClient::Reply> RemoteChat::send(std::string_view method, const std::string& path,
                                                   const std::string& body,
                                                   const client::HttpClient::Hooks& hooks) {
  constexpr int kBusy = 409;
  bool was_down = false;
  // An earlier Ctrl-C has been heeded.
  const bool was_interrupted = terminal::interrupted();
  const auto wants_end = [&] {
    return hooks.wants_end ? hooks.wants_end() : terminal::interrupted() && !was_interrupted;
  };
  for (int32_t attempt = 1;; ++attempt) {
    Result<client::HttpClient::Reply> reply = client_.send(method, path, body, hooks);
    const bool is_down = !reply && reply.error().code == ErrorCode::not_found;
    // At the start there is nothing to come back to.
    if (is_down && !id_.empty() && attempt < kConnectTries && !wants_end()) {
      if (!std::exchange(was_down, true)) {
        std::fprintf(stderr, "cairn: %s; trying again\n", printable(reply.error().message).c_str());
      }
      std::this_thread::sleep_for(kBetweenTries);
      continue;
    }
    const bool is_busy = reply && reply->status == kBusy;
    if (is_busy && attempt < kBusyTries && !wants_end()) {
      std::this_thread::sleep_for(kBetweenTries);
      continue;
    }
    if (reply && was_down) std::fprintf(stderr, "cairn: the server is there again\n");
    return reply;
  }
}

Result<json::Value> RemoteChat::ask(std::string_view method, const std::string& path,
                                    const json::Value& body) {
  const std::string text = method == "POST" ? json::to_text(body) : "";
  CAIRN_TRY(const client::HttpClient::Reply reply, send(method, path, text, {}));
  if (reply.status != 200) {
    return fail(ErrorCode::io, "{}", server_error(reply.status, reply.body));
  }
  return read_json("the server's reply", reply.body);
}

Status RemoteChat::look_at_model(const session::SamplingChoice& choice) {
  CAIRN_TRY(const json::Value models, ask("GET", "/v1/models"));
  const json::Value* const list = models.find("data");
  if (list == nullptr || list->items().empty()) {
    return fail(ErrorCode::unsupported, "the server: expected a model, found none");
  }
  const json::Value& model = list->items().front();
  model_ = model.text_at("id").value_or("");
  if (const json::Value* const meta = model.find("meta")) {
    architecture_ = meta->text_at("architecture").value_or("");
    const json::Value* const count = meta->find("n_params");
    if (count != nullptr) parameter_count_ = count->as_integer().value_or(0);
  }
  CAIRN_TRY(const json::Value props, ask("GET", "/props"));
  const json::Value* const defaults = props.find("default_generation_settings");
  const json::Value* const params = defaults == nullptr ? nullptr : defaults->find("params");
  sample::SamplingParams& sampling = options_.sampling;
  if (params != nullptr) CAIRN_TRY(take_defaults(*params, sampling));
  for (const auto& [field, value] : choice.said) CAIRN_TRY(set(sampling, *field, value));
  for (const auto& [known, values] : choice.lists) CAIRN_TRY(known->set(sampling, values));
  sampling.seed = choice.seed ? *choice.seed : session::new_seed();
  return Ok{};
}

Status RemoteChat::make_session(const json::Value& body) {
  CAIRN_TRY(const json::Value made, ask("POST", "/v1/sessions", body));
  const auto id = made.text_at("id");
  if (!id) return fail(ErrorCode::unsupported, "the server: expected a session, found none");
  CAIRN_TRY(forget_session());
  id_ = *id;
  return refresh();
}

Status RemoteChat::forget_session() {
  if (id_.empty()) return Ok{};
  CAIRN_TRY(ask("DELETE", path()));
  id_.clear();
  return Ok{};
}

json::Value RemoteChat::said_json(bool with_system) const {
  std::vector<session::Message> all;
  if (with_system && !options_.system.empty()) all.push_back({"system", options_.system});
  for (const session::Message& message : dialogue_.messages()) all.push_back(message);
  return session::transcript_json({.messages = std::move(all),
                                   .vocabulary = vocabulary_,
                                   .seed = options_.sampling.seed,
                                   .sampler = dialogue_.sampler()});
}

// A server that keeps nothing over a restart has lost the session: what is known here is enough
// for another, but for branches.
Status RemoteChat::bring_back() {
  id_.clear();
  // A system message that was not said yet is part of what is asked.
  CAIRN_TRY(make_session(said_json(has_system_)));
  std::fprintf(stderr, "cairn: the server has lost the session; it goes on in a new one\n");
  return Ok{};
}

Status RemoteChat::refresh() {
  CAIRN_TRY(const json::Value whole, ask("GET", path()));
  return take_session(whole);
}

// After a request that failed: the server may have done what it was asked. Where it cannot be asked
// now, what is known here stays.
void RemoteChat::look_again() {
  Result<client::HttpClient::Reply> reply = client_.send("GET", path(), "", {});
  if (!reply || reply->status != 200) return;
  Result<json::Value> whole = read_json("the server's session", reply->body);
  if (whole) (void)take_session(*whole);
}

Status RemoteChat::take_session(const json::Value& whole) {
  CAIRN_TRY(session::Transcript said, session::read_transcript("the server's session", whole));
  has_system_ = !said.messages.empty() && said.messages.front().role == "system";
  if (has_system_) {
    options_.system = said.messages.front().content;
    said.messages.erase(said.messages.begin());
  }
  vocabulary_ = said.vocabulary;
  const std::string_view active = whole.text_at("branch").value_or("");
  std::vector<session::Branch> branches;
  size_t index = 0;
  if (const json::Value* const list = whole.find("branches")) {
    for (const json::Value& branch : list->items()) {
      const std::string name(branch.text_at("name").value_or(""));
      if (name == active) {
        index = branches.size();
        branches.push_back({.name = name,
                            .messages = session::MessageList(said.messages),
                            .sampler = said.sampler});
        continue;
      }
      // Of the others the server keeps what was said; here they have their lengths alone.
      const json::Value* const count = branch.find("messages");
      const int64_t told = count == nullptr ? 0 : count->as_integer().value_or(0);
      const size_t messages = size_t(std::clamp<int64_t>(told, 0, kMessagesMax));
      branches.push_back({.name = name,
                          .messages = session::MessageList(std::vector<session::Message>(
                              messages - std::min<size_t>(messages, has_system_ ? 1 : 0)))});
    }
  }
  if (branches.empty()) return fail(ErrorCode::invalid_data, "the server: expected a branch");
  dialogue_ = session::Dialogue(std::move(branches), index);
  ++change_count_;
  return Ok{};
}

std::string RemoteChat::greeting() const {
  return fmt::format("{} (on a server): {} ({} million parameters)", model_, architecture_,
                     (parameter_count_ + 500000) / 1000000);
}

Status RemoteChat::add_settings(json::Value& body) const {
  const sample::SamplingParams& sampling = options_.sampling;
  for (const sample::SamplingField& field : sample::sampling_fields()) {
    if (field.name == "n_probs" || field.name == "post_sampling_probs") continue;
    const double value = sample::get(sampling, field);
    body[field.name] = field.flag != nullptr    ? json::Value(value != 0)
                       : field.count != nullptr ? json::Value(int64_t(value))
                                                : json::Value(value);
  }
  body["samplers"] = sampling.samplers;
  body["dry_sequence_breakers"] = sampling.dry_breakers;
  if (!sampling.logit_bias.empty()) body["logit_bias"] = biases_json(sampling);
  body["seed"] = int64_t(sampling.seed & ((uint64_t(1) << 53) - 1));
  body["max_tokens"] = options_.token_count_max;
  if (!options_.stop.empty()) body["stop"] = options_.stop;
  const session::ConstraintChoice& form = options_.constraint;
  if (form.json_schema) {
    CAIRN_TRY(body["json_schema"], read_json("--json-schema", *form.json_schema));
  }
  if (form.grammar) body["grammar"] = *form.grammar;
  if (form.regex) body["regex"] = *form.regex;
  if (!form.choices.empty()) body["choices"] = form.choices;
  if (!options_.tools.empty()) {
    CAIRN_TRY(body["tools"], read_json("--tools", options_.tools));
  }
  const std::string& choice = options_.tool_choice;
  if (choice == "auto" || choice == "none" || choice == "required") {
    body["tool_choice"] = choice;
  } else if (!choice.empty()) {
    body["tool_choice"] = {{"type", "function"}, {"function", {{"name", choice}}}};
  }
  if (options_.reasoning == chat::ReasoningMode::off) body["reasoning_effort"] = "none";
  if (options_.reasoning == chat::ReasoningMode::on) {
    body["chat_template_kwargs"] = {{"enable_thinking", true}};
  }
  if (options_.reasoning_tokens_max >= 0) body["reasoning_tokens"] = options_.reasoning_tokens_max;
  if (options_.keeps_receipts) body["receipt"] = true;
  return Ok{};
}

Result<ContextShift> RemoteChat::begin(const Ask& ask) {
  session::Dialogue after = dialogue_;
  json::Value messages = json::Value::array();
  asked_ = json::Value::object();
  std::optional<size_t> kept;  // Of the messages here.
  switch (ask.kind) {
    case Ask::Kind::message:
      messages.push_back(message_json("user", ask.text));
      break;
    case Ask::Kind::results: {
      CAIRN_TRY(after.give_results(ask.results));
      for (size_t at = dialogue_.messages().size(); at < after.messages().size(); ++at) {
        messages.push_back(session::message_json(after.messages()[at]));
      }
      break;
    }
    case Ask::Kind::regenerate:
      CAIRN_TRY(after.drop_answer());
      ++options_.sampling.seed;
      kept = after.messages().size();
      break;
    case Ask::Kind::go_on:
      CAIRN_TRY(after.check_continues());
      asked_["continue_answer"] = true;
      break;
    case Ask::Kind::edit:
      CAIRN_TRY(after.edit(ask.text));
      kept = after.messages().size() - 1;
      messages.push_back(message_json("user", ask.text));
      break;
  }
  if (kept) asked_["keep"] = *kept + (has_system_ ? 1 : 0);
  if (!has_system_ && !options_.system.empty() && after.messages().empty()) {
    json::Value with_system = json::Value::array();
    with_system.push_back(message_json("system", options_.system));
    for (const json::Value& message : messages.items()) with_system.push_back(message);
    messages = std::move(with_system);
  }
  if (!messages.items().empty()) asked_["messages"] = std::move(messages);
  asked_["stream"] = true;
  asked_["stream_options"] = {{"include_usage", true}};
  CAIRN_TRY(add_settings(asked_));
  return ContextShift{};
}

// Ctrl-C: an answer that has begun is ended by the server, and stays as far as it went; before
// that the request is given up, and nothing was said.
Result<session::Answer> RemoteChat::complete(const session::AnswerHooks& hooks) {
  EventReader events(&hooks);
  bool is_stopped = false;
  const client::HttpClient::Hooks reading{
      .on_bytes = [&](std::string_view bytes) { events.add(bytes); },
      .wants_end =
          [&] {
            if (is_stopped || !hooks.wants_stop || !hooks.wants_stop()) return false;
            if (!events.has_text()) return true;
            is_stopped = true;
            (void)client_.send("POST", path("stop"), "{}", {});
            return false;
          }};
  Result<client::HttpClient::Reply> reply =
      send("POST", path("generate"), json::to_text(asked_), reading);
  if (reply && reply->status == 404) {
    CAIRN_TRY(bring_back());
    reply = send("POST", path("generate"), json::to_text(asked_), reading);
  }
  if (!reply && reply.error().code == ErrorCode::cancelled) {
    look_again();
    return fail(ErrorCode::cancelled, "stopped before the answer began: the message is taken back");
  }
  if (!reply) {
    look_again();
    return reply.error();
  }
  if (reply->status != 200) {
    return fail(ErrorCode::io, "{}", server_error(reply->status, reply->body));
  }
  receipt_ = events.take_receipt();
  Result<session::Answer> answer = std::move(events).finish();
  if (!answer) {
    look_again();
    return answer;
  }
  if (is_stopped) answer->finish = session::FinishReason::interrupted;
  CAIRN_TRY(refresh());
  return answer;
}

Status RemoteChat::write_receipt(const std::string& path) {
  if (receipt_.is_null()) return Ok{};
  const std::string text = json::to_text(receipt_) + "\n";
  return write_file(path, std::as_bytes(std::span(text)), {.is_private = true});
}

Result<std::string> RemoteChat::json_of(const session::Answer& /*answer*/) {
  return fail(ErrorCode::unsupported,
              "--json: expected a model here, found --server, whose own routes reply with JSON");
}

std::string RemoteChat::figures(Figures figures, const session::Answer& answer) {
  const size_t count = answer.tokens.size();
  const double seconds = answer.generation_seconds;
  std::string line = fmt::format("{} {}", count, count == 1 ? "token" : "tokens");
  if (count > 0 && seconds > 0) line += fmt::format(" · {:.0f}/s", double(count) / seconds);
  if (answer.prompt.reused_tokens > 0) {
    line += fmt::format(" · {} reused", answer.prompt.reused_tokens);
  }
  if (figures == Figures::all) {
    line +=
        fmt::format(" · prompt of {} tokens, {} computed in {:.2f} s", answer.prompt.prompt_tokens,
                    answer.prompt.computed_tokens, answer.prompt_seconds);
  }
  if (answer.left_out_tokens > 0) line += fmt::format(" · {} left out", answer.left_out_tokens);
  if (answer.finish == session::FinishReason::interrupted) line += " · interrupted";
  return line;
}

Status RemoteChat::set_system(std::string_view text) {
  if (!dialogue_.messages().empty()) {
    return fail(ErrorCode::unsupported,
                "/system: expected a conversation without messages, found {}: a server's session "
                "keeps the system message as it was said; /clear begins anew",
                dialogue_.messages().size());
  }
  if (has_system_) CAIRN_TRY(clear());
  options_.system = text;
  return Ok{};
}

Result<std::string> RemoteChat::adapters(std::string_view /*uses*/) {
  return fail(ErrorCode::unsupported,
              "/lora: expected a model here, found a server, whose adapters are for all its "
              "clients");
}

Result<std::string> RemoteChat::memory_lines() {
  const size_t count = dialogue_.messages().size() + (has_system_ ? 1 : 0);
  CAIRN_TRY(const json::Value told, ask("POST", path("rewind"), {{"keep", count}}));
  return fmt::format("session {}: {} messages on the server; {}", id_, count,
                     plan_line(plan_of(told)));
}

Status RemoteChat::clear() {
  const std::string system = options_.system;
  CAIRN_TRY(ask("POST", path("rewind"), {{"keep", 0}}));
  CAIRN_TRY(refresh());
  options_.system = system;
  return Ok{};
}

Result<memory::ResumePlan> RemoteChat::change(std::string_view verb, const json::Value& body) {
  CAIRN_TRY(const json::Value told, ask("POST", path(verb), body));
  CAIRN_TRY(refresh());
  return plan_of(told);
}

Result<memory::ResumePlan> RemoteChat::rewind(int32_t turns) {
  session::Dialogue after = dialogue_;
  CAIRN_TRY(after.rewind(turns));
  return change("rewind", {{"turns", turns}});
}

Status RemoteChat::fork(std::string_view name) {
  CAIRN_TRY(change("branch", {{"name", name}}));
  return Ok{};
}

Result<memory::ResumePlan> RemoteChat::switch_to(std::string_view name) {
  return change("switch", {{"name", name}});
}

Status RemoteChat::save(const std::string& path) {
  const std::string text = json::to_text(said_json(true), {.indent = 2}) + "\n";
  return write_file(path, std::as_bytes(std::span(text)), {.is_private = true});
}

Status RemoteChat::load(const std::string& path) {
  CAIRN_TRY(session::Transcript said, session::read_transcript(path));
  if (said.seed && !options_.keeps_seed) options_.sampling.seed = *said.seed;
  options_.system.clear();
  return make_session(session::transcript_json(said));
}

}  // namespace cairn::terminal_chat
