// Edits of lists of messages.
#include "session/dialogue.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"

namespace cairn::session {

namespace {

constexpr char kFirstBranch[] = "main";

bool is_answer(const Message& message) {
  return message.role == "assistant";
}

bool is_users(const Message& message) {
  return message.role == "user";
}

// A result is told apart by its call's id, so that none may be there twice.
void name_calls(Message& said, const MessageList& before, const chat::CallFormat& format) {
  std::set<std::string> known;
  for (const Message& message : before) {
    for (const chat::ToolCall& call : message.calls) known.insert(call.id);
  }
  for (size_t call = 0; call < said.calls.size(); ++call) {
    std::string& id = said.calls[call].id;
    for (size_t place = before.size(); id.empty() || known.contains(id); ++place) {
      id = chat::make_call_id(format, place, call);
    }
    known.insert(id);
  }
}

}  // namespace

Dialogue::Dialogue() : branches_{{.name = kFirstBranch}} {}

Dialogue::Dialogue(std::vector<Branch> branches, size_t active)
    : branches_(std::move(branches)), active_(active) {
  CHECK(active_ < branches_.size());
}

int32_t Dialogue::turn_count() const {
  return int32_t(std::count_if(messages().begin(), messages().end(), is_users));
}

std::span<const chat::ToolCall> Dialogue::open_calls() const {
  if (messages().empty()) return {};
  return messages().back().calls;
}

Result<std::string> Dialogue::last_message() const {
  for (size_t index = messages().size(); index > 0; --index) {
    if (is_users(messages()[index - 1])) return messages()[index - 1].content;
  }
  return fail(ErrorCode::invalid_argument, "expected a message to change, found none");
}

Status Dialogue::check_continues() const {
  if (!messages().empty() && is_answer(messages().back())) return Ok{};
  return fail(ErrorCode::invalid_argument, "expected an answer to continue, found none");
}

void Dialogue::add(Message message) {
  active().push_back(std::move(message));
}

Status Dialogue::give_results(std::span<const std::string> results) {
  const std::span<const chat::ToolCall> open = open_calls();
  if (open.empty() || results.size() != open.size()) {
    return fail(ErrorCode::invalid_argument, "tool results: expected {}, found {}", open.size(),
                results.size());
  }
  const std::vector<chat::ToolCall> calls(open.begin(), open.end());
  for (size_t call = 0; call < calls.size(); ++call) {
    Message result{"tool", results[call]};
    result.call_id = calls[call].id;
    result.name = calls[call].name;
    add(std::move(result));
  }
  return Ok{};
}

Status Dialogue::drop_answer() {
  if (messages().empty()) {
    return fail(ErrorCode::invalid_argument, "expected an answer to make again, found none");
  }
  if (is_answer(messages().back())) active().pop_back();
  return Ok{};
}

Status Dialogue::edit(std::string_view text) {
  if (Result<std::string> last = last_message(); !last) return std::move(last).error();
  while (!is_users(messages().back())) active().pop_back();
  active().pop_back();
  add({"user", std::string(text)});
  return Ok{};
}

void Dialogue::add_answer(Message said, bool continues, const chat::CallFormat& format,
                          sample::SamplerState sampler) {
  branches_[active_].sampler = std::move(sampler);
  if (continues) active().pop_back();
  name_calls(said, messages(), format);
  add(std::move(said));
}

void Dialogue::replace(MessageList messages, sample::SamplerState sampler) {
  active() = std::move(messages);
  branches_[active_].sampler = std::move(sampler);
}

Status Dialogue::keep(size_t message_count) {
  if (message_count > messages().size()) {
    return fail(ErrorCode::invalid_argument, "expected at most {} messages, found {}",
                messages().size(), message_count);
  }
  if (message_count == messages().size()) return Ok{};
  active().shorten(message_count);
  branches_[active_].sampler = {};
  return Ok{};
}

Status Dialogue::rewind(int32_t turns) {
  const int32_t count = turn_count();
  if (count == 0) {
    return fail(ErrorCode::invalid_argument, "expected a turn to take back, found none");
  }
  if (turns < 1 || turns > count) {
    return fail(ErrorCode::invalid_argument, "expected 1 to {} turns, found {}", count, turns);
  }
  size_t kept = messages().size();
  for (int32_t turn = 0; turn < turns; ++turn) {
    while (!is_users(messages()[kept - 1])) --kept;
    --kept;
  }
  return keep(kept);
}

Status Dialogue::fork(std::string_view name) {
  if (messages().empty()) {
    return fail(ErrorCode::invalid_argument, "expected a conversation, found no message");
  }
  for (const Branch& branch : branches_) {
    if (branch.name != name) continue;
    return fail(ErrorCode::invalid_argument, "expected a new name, found \"{}\" again", name);
  }
  Branch forked = branches_[active_];
  forked.name = name;
  branches_.push_back(std::move(forked));
  active_ = branches_.size() - 1;
  return Ok{};
}

Status Dialogue::switch_to(std::string_view name) {
  std::string known;
  for (size_t branch = 0; branch < branches_.size(); ++branch) {
    if (branches_[branch].name == name) {
      active_ = branch;
      return Ok{};
    }
    known += (branch == 0 ? "" : ", ") + branches_[branch].name;
  }
  return fail(ErrorCode::invalid_argument, "expected one of {}, found \"{}\"", known, name);
}

}  // namespace cairn::session
