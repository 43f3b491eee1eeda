// What the template sees: the names that Hugging Face's apply_chat_template passes.
#include "chat/chat_template.h"

#include <algorithm>

#include "jinja/interpreter.h"
#include "jinja/syntax/parser.h"
#include "unicode/unicode.h"

namespace cairn::chat {
namespace {

// The client may choose among these, and templates build special tokens from them ('<|' + role +
// '|>'), so they are trusted; none can be a part of an attack, as they are words of a fixed list.
constexpr std::string_view kRoles[] = {"system",      "developer",     "user",    "assistant",
                                       "tool",        "function",      "model",   "ipython",
                                       "observation", "tool_response", "context", "environment"};

constexpr std::string_view kReserved[] = {"messages",
                                          "tools",
                                          "documents",
                                          "bos_token",
                                          "eos_token",
                                          "tokenize",
                                          "chat_template",
                                          "padding",
                                          "truncation",
                                          "max_length",
                                          "return_dict",
                                          "return_tensors",
                                          "conversation",
                                          "raise_exception",
                                          "strftime_now",
                                          "add_generation_prompt",
                                          "continue_final_message",
                                          "return_assistant_tokens_mask"};

bool is_known_role(const jinja::Value& role) {
  return role.is(jinja::Kind::string) &&
         std::find(std::begin(kRoles), std::end(kRoles), role.text()) != std::end(kRoles);
}

Result<jinja::Value> with_trusted_role(const jinja::Value& message) {
  if (!message.is(jinja::Kind::dict)) return message;
  std::vector<jinja::Entry> entries = message.as<jinja::DictObject>().entries;
  for (auto& [key, value] : entries) {
    const bool is_role = key.is(jinja::Kind::string) && key.text() == "role";
    if (is_role && is_known_role(value)) value = jinja::plain_string(value.text(), true);
  }
  return jinja::plain_dict(std::move(entries));
}

Result<jinja::Value> with_trusted_roles(const jinja::Value& messages) {
  if (!messages.is(jinja::Kind::list)) return messages;
  std::vector<jinja::Value> trusted;
  trusted.reserve(messages.items().size());
  for (const jinja::Value& message : messages.items()) {
    CAIRN_TRY(jinja::Value with_role, with_trusted_role(message));
    trusted.push_back(std::move(with_role));
  }
  return jinja::plain_list(std::move(trusted));
}

Status check_utf8(std::string_view text, std::string_view what) {
  const size_t valid = unicode::valid_utf8_bytes(text);
  if (valid == text.size()) return Ok{};
  return fail(ErrorCode::invalid_argument, "{}: expected UTF-8, found byte 0x{:02x} at {}", what,
              unsigned(uint8_t(text[valid])), valid);
}

}  // namespace

Status check_variables(std::span<const std::pair<std::string, jinja::Value>> variables) {
  for (const auto& [name, value] : variables) {
    if (std::find(std::begin(kReserved), std::end(kReserved), name) == std::end(kReserved)) {
      continue;
    }
    return fail(ErrorCode::invalid_argument,
                "a variable of the chat template: expected a free name, found '{}', which is "
                "reserved",
                name);
  }
  return Ok{};
}

ChatTemplate::ChatTemplate(std::unique_ptr<const jinja::Tree> tree, std::string source)
    : tree_(std::move(tree)), source_(std::move(source)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  CAIRN_TRY(std::unique_ptr<const jinja::Tree> tree, jinja::parse(source));
  return ChatTemplate(std::move(tree), std::string(source));
}

Result<RenderedPrompt> ChatTemplate::render(const ChatInput& input) const {
  jinja::WorkBudget budget;
  return render(input, budget);
}

Result<RenderedPrompt> ChatTemplate::render(const ChatInput& input,
                                            jinja::WorkBudget& budget) const {
  CAIRN_TRY(check_variables(input.variables));
  CAIRN_TRY(check_utf8(input.bos_token, "bos_token"));
  CAIRN_TRY(check_utf8(input.eos_token, "eos_token"));
  CAIRN_TRY(jinja::Value messages, with_trusted_roles(input.messages));
  std::vector<jinja::Variable> variables = input.variables;
  variables.emplace_back("messages", std::move(messages));
  variables.emplace_back("tools", input.tools);
  variables.emplace_back("documents", input.documents);
  variables.emplace_back("add_generation_prompt",
                         jinja::Value::boolean(input.add_generation_prompt));
  variables.emplace_back("bos_token", jinja::plain_string(input.bos_token, true));
  variables.emplace_back("eos_token", jinja::plain_string(input.eos_token, true));
  CAIRN_TRY(jinja::MarkedText text, jinja::render(*tree_, variables, input.clock, budget));
  RenderedPrompt prompt;
  prompt.spans = text.spans();
  prompt.text = std::move(text).take_bytes();
  return prompt;
}

bool ChatTemplate::mentions(std::string_view name) const {
  return std::find(tree_->names.begin(), tree_->names.end(), name) != tree_->names.end();
}

}  // namespace cairn::chat
