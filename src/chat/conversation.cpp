// Messages through the template, and its text with its marks through the tokenizer.
#include "chat/conversation.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include "chat/loose_match.h"
#include "jinja/characters.h"
#include "jinja/values/json_value.h"
#include "unicode/unicode.h"

namespace cairn::chat {

namespace {

using chat::RenderedPrompt;
using jinja::Value;

constexpr size_t kPromptEndBytes = 256;
// Stands for a turn whose place is looked for; no template and no user writes it.
constexpr std::string_view kPlaceMark = "\x02turn\x03";
// What of tools may be left out.
constexpr std::string_view kNoParameters = R"({"type": "object", "properties": {}})";
constexpr std::string_view kPlainFunction =
    R"({"name": "", "description": "", "parameters": {"type": "object", "properties": {}}})";

std::string piece_or_nothing(const tokenize::Tokenizer& tokenizer, std::optional<Token> token) {
  return token ? std::string(tokenizer.piece(*token)) : std::string();
}

void add_member(std::string_view name, Value value, std::vector<jinja::Entry>& entries) {
  entries.emplace_back(jinja::plain_string(name, false), std::move(value));
}

void add_text(std::string_view name, std::string_view text, std::vector<jinja::Entry>& entries) {
  add_member(name, jinja::plain_string(as_utf8(text), false), entries);
}

Result<Value> call_value(const ToolCall& call, const CallFormat& format) {
  std::vector<jinja::Entry> function, entries;
  add_text("name", call.name, function);
  // Nothing is how some clients and models write that there are none.
  const std::string_view text = call.arguments.empty() ? "{}" : std::string_view(call.arguments);
  Result<Value> arguments = jinja::parse_json(as_utf8(text));
  if (arguments && !format.wants_text_arguments) {
    add_member("arguments", std::move(arguments).value(), function);
  } else {
    add_text("arguments", text, function);
  }
  add_text("id", call.id, entries);
  add_text("type", "function", entries);
  CAIRN_TRY(Value dict, jinja::plain_dict(std::move(function)));
  add_member("function", std::move(dict), entries);
  return jinja::plain_dict(std::move(entries));
}

Result<Value> message_value(const Message& message, const CallFormat& format) {
  std::vector<jinja::Entry> entries;
  add_text("role", message.role, entries);
  if (message.content.empty() && !message.calls.empty() && format.wants_null_content) {
    add_member("content", Value::none(), entries);
  } else if (message.role == "assistant") {
    add_text("content", message.content, entries);
  } else {
    const size_t valid = unicode::valid_utf8_bytes(message.content);
    if (valid != message.content.size()) {
      return fail(ErrorCode::invalid_argument, "content: expected UTF-8, found byte 0x{:02x} at {}",
                  unsigned(uint8_t(message.content[valid])), valid);
    }
    add_text("content", message.content, entries);
  }
  if (!message.reasoning.empty()) add_text("reasoning_content", message.reasoning, entries);
  if (!message.call_id.empty()) add_text("tool_call_id", message.call_id, entries);
  if (!message.name.empty()) add_text("name", message.name, entries);
  if (!message.calls.empty()) {
    std::vector<Value> calls;
    for (const ToolCall& call : message.calls) {
      CAIRN_TRY(Value value, call_value(call, format));
      calls.push_back(std::move(value));
    }
    CAIRN_TRY(Value list, jinja::plain_list(std::move(calls)));
    add_member("tool_calls", std::move(list), entries);
  }
  return jinja::plain_dict(std::move(entries));
}

// Null where it is no dict, or has nothing under this name.
const Value* find_set(const Value& value, std::string_view name) {
  if (!value.is(jinja::Kind::dict)) return nullptr;
  const Value* const found = value.as<jinja::DictObject>().find(name);
  return found == nullptr || found->is(jinja::Kind::none) ? nullptr : found;
}

Result<Value> with_member(const Value& dict, std::string_view name, Value value) {
  std::vector<jinja::Entry> entries = dict.as<jinja::DictObject>().entries;
  add_member(name, std::move(value), entries);
  return jinja::plain_dict(std::move(entries));
}

// The members that JSON names, with the values that a dict has set, and then its others.
Result<Value> with_defaults(const Value& dict, std::string_view json) {
  CAIRN_TRY(const Value defaults, jinja::parse_json(json));
  std::vector<jinja::Entry> entries = defaults.as<jinja::DictObject>().entries;
  for (const jinja::Entry& entry : dict.as<jinja::DictObject>().entries) {
    if (!entry.second.is(jinja::Kind::none)) entries.push_back(entry);
  }
  return jinja::plain_dict(std::move(entries));
}

bool lacks_properties(const Value& parameters) {
  if (!parameters.is(jinja::Kind::dict) || find_set(parameters, "properties")) return false;
  const Value* const type = find_set(parameters, "type");
  return parameters.as<jinja::DictObject>().entries.empty() ||
         (type != nullptr && type->is(jinja::Kind::string) && type->text() == "object");
}

// Requests may leave a function's description and parameters out, and many templates expect both. A
// function that has them stays as it is, to the byte.
Result<Value> whole_function(const Value& function) {
  const Value* const parameters = find_set(function, "parameters");
  const bool has_parameters = parameters != nullptr && !lacks_properties(*parameters);
  if (has_parameters && find_set(function, "description")) return function;
  CAIRN_TRY(Value whole, with_defaults(function, kPlainFunction));
  if (parameters == nullptr || has_parameters) return whole;
  CAIRN_TRY(Value filled, with_defaults(*parameters, kNoParameters));
  return with_member(whole, "parameters", std::move(filled));
}

// {"type": "function", "function": {…}}, or the function without the object around it.
Result<Value> whole_tool(const Value& tool) {
  const Value* const function = find_set(tool, "function");
  if (function == nullptr) return find_set(tool, "name") ? whole_function(tool) : tool;
  if (!function->is(jinja::Kind::dict)) return tool;
  CAIRN_TRY(Value whole, whole_function(*function));
  return with_member(tool, "function", std::move(whole));
}

Result<Value> tools_value(std::string_view tools) {
  CAIRN_TRY(Value list, jinja::parse_json(tools));
  if (!list.is(jinja::Kind::list)) return list;
  std::vector<Value> whole;
  for (const Value& tool : list.items()) {
    CAIRN_TRY(Value value, whole_tool(tool));
    whole.push_back(std::move(value));
  }
  return jinja::plain_list(std::move(whole));
}

Result<RenderedPrompt> render(const Dialect& dialect, std::span<const Message> messages,
                              const PromptOptions& options, bool adds_prompt) {
  const CallFormat& format = dialect.format->call;
  std::vector<Value> list;
  for (const Message& message : messages) {
    CAIRN_TRY(Value value, message_value(message, format));
    list.push_back(std::move(value));
  }
  chat::ChatInput input;
  CAIRN_TRY(input.messages, jinja::plain_list(std::move(list)));
  if (!options.tools.empty()) {
    CAIRN_TRY(input.tools, tools_value(options.tools));
  }
  for (const auto& [name, value] : options.switches) {
    input.variables.emplace_back(name, Value::boolean(value));
  }
  for (const auto& [name, value] : options.variables) {
    CAIRN_TRY(Value parsed, jinja::parse_json(value));
    input.variables.emplace_back(name, std::move(parsed));
  }
  input.add_generation_prompt = adds_prompt;
  const tokenize::Tokenizer& tokenizer = *dialect.tokenizer;
  input.bos_token = piece_or_nothing(tokenizer, tokenizer.special_ids().bos);
  input.eos_token = piece_or_nothing(tokenizer, tokenizer.special_ids().eos);
  input.clock = jinja::local_time_now();
  return dialect.chat_template->render(input);
}

void add_answer_begin(const PromptOptions& options, RenderedPrompt& rendered) {
  if (options.answer_begin.empty()) return;
  const size_t begin = rendered.text.size();
  rendered.text += options.answer_begin;
  rendered.spans.push_back({begin, rendered.text.size(), true});
}

struct Range {
  size_t begin = 0, end = 0;  // Bytes of the rendered text.
};

std::string_view without_blanks_before(std::string_view text) {
  while (!text.empty() && jinja::is_python_space(jinja::character_at(text, 0))) {
    text.remove_prefix(jinja::next_character(text, 0));
  }
  return text;
}

std::string_view without_blanks_behind(std::string_view text) {
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t next = jinja::next_character(text, at);
    if (!jinja::is_python_space(jinja::character_at(text, at))) end = next;
    at = next;
  }
  return text.substr(0, end);
}

// A message's content as templates write it: many take the blanks at its ends away.
class WrittenContent {
 public:
  explicit WrittenContent(std::string_view content)
      : forms_{content, without_blanks_before(content), without_blanks_behind(content),
               without_blanks_behind(without_blanks_before(content))} {}

  bool is(std::string_view text) const {
    return !text.empty() && std::find(forms_.begin(), forms_.end(), text) != forms_.end();
  }

 private:
  std::array<std::string_view, 4> forms_;
};

// Where each message's content stands; absent where the template has changed more of it than the
// blanks at its ends, or where two of them touch.
std::vector<std::optional<Range>> find_contents(const chat::RenderedPrompt& prompt,
                                                std::span<const Message> messages) {
  std::vector<std::optional<Range>> found(messages.size());
  std::vector<WrittenContent> contents;
  for (const Message& message : messages) contents.emplace_back(message.content);
  size_t next = 0;
  for (const jinja::OriginSpan& span : prompt.spans) {
    if (span.trusted) continue;
    const auto text = std::string_view(prompt.text).substr(span.begin, span.end - span.begin);
    for (size_t message = next; message < messages.size(); ++message) {
      if (!contents[message].is(text)) continue;
      found[message] = Range{span.begin, span.end};
      next = message + 1;
      break;
    }
  }
  return found;
}

// The tokens of a part of the rendered text, behind those in `tokens`.
void encode_part(const tokenize::Tokenizer& tokenizer, const chat::RenderedPrompt& prompt,
                 Range part, std::vector<Token>& tokens) {
  std::vector<tokenize::TextPiece> pieces;
  for (const jinja::OriginSpan& span : prompt.spans) {
    const size_t begin = std::max<size_t>(span.begin, part.begin);
    const size_t end = std::min<size_t>(span.end, part.end);
    if (begin >= end) continue;
    pieces.push_back({std::string_view(prompt.text).substr(begin, end - begin), span.trusted});
  }
  const bool goes_on = !tokens.empty();
  if (pieces.empty()) return;
  tokenizer.encode_to(pieces, {.parse_special = true, .goes_on = goes_on}, tokens);
}

std::string spell(const tokenize::Tokenizer& tokenizer, std::span<const Token> tokens) {
  std::string text;
  for (const Token token : tokens) text += tokenizer.piece(token);
  return text;
}

// Tokens that take the place of a part of the rendered text, which they spell.
struct Splice {
  Range range;
  std::span<const Token> tokens;
};

// As many of the tokens as spell what stands at `begin`.
Splice splice_at(const tokenize::Tokenizer& tokenizer, std::string_view text, size_t begin,
                 std::span<const Token> tokens) {
  size_t count = 0, end = begin;
  for (; count < tokens.size(); ++count) {
    const std::string_view piece = tokenizer.piece(tokens[count]);
    if (!text.substr(end).starts_with(piece)) break;
    end += piece.size();
  }
  return {{begin, end}, tokens.first(count)};
}

// Finds where turns begin whose text says nothing of it: what the template writes to have an answer
// begun stands before them too.
class TurnFinder {
 public:
  TurnFinder(const Dialect& dialect, std::span<const Message> messages,
             const PromptOptions& options, const RenderedPrompt& prompt)
      : dialect_(dialect), messages_(messages), options_(options), text_(prompt.text) {}

  std::optional<size_t> find(size_t message) {
    if (!opening_) opening_ = find_opening();
    if (opening_->empty()) return std::nullopt;
    std::vector<Message> marked(messages_.begin(), messages_.end());
    marked[message] = {"assistant", std::string(kPlaceMark)};
    Result<RenderedPrompt> other = render(dialect_, marked, options_, true);
    if (!other) return std::nullopt;
    const std::string_view text = text_;
    const size_t shared = size_t(
        std::mismatch(text.begin(), text.end(), other->text.begin(), other->text.end()).first -
        text.begin());
    std::string_view opening = *opening_;
    size_t found = text.substr(0, shared).rfind(opening);
    if (found == std::string_view::npos) {
      // Of an old turn the reasoning may be gone that the opening leaves the model in.
      opening = trimmed_right(opening);
      const std::string& reasoning = dialect_.format->reasoning_open;
      if (reasoning.empty() || !opening.ends_with(reasoning)) return std::nullopt;
      opening.remove_suffix(reasoning.size());
      found = text.substr(0, shared).rfind(opening);
    }
    if (found == std::string_view::npos) return std::nullopt;
    return found + opening.size();
  }

 private:
  std::string find_opening() const {
    Result<RenderedPrompt> without = render(dialect_, messages_, options_, false);
    if (!without || !text_.starts_with(without->text)) return {};
    return text_.substr(without->text.size());
  }

  const Dialect& dialect_;
  std::span<const Message> messages_;
  const PromptOptions& options_;
  const std::string& text_;
  std::optional<std::string> opening_;
};

std::vector<Splice> find_splices(const Dialect& dialect, std::span<const Message> messages,
                                 const PromptOptions& options, const RenderedPrompt& prompt,
                                 std::span<const std::optional<Range>> contents) {
  TurnFinder finder(dialect, messages, options, prompt);
  std::vector<Splice> splices;
  size_t end = 0;
  for (size_t message = 0; message < messages.size(); ++message) {
    const Message& said = messages[message];
    if (said.role != "assistant" || said.tokens.empty()) continue;
    const bool is_plain = said.reasoning.empty() && said.calls.empty() && contents[message];
    std::optional<size_t> begin;
    if (is_plain) begin = contents[message]->begin;
    if (!is_plain) begin = finder.find(message);
    if (!begin || *begin < end) continue;
    const Splice splice = splice_at(*dialect.tokenizer, prompt.text, *begin, said.tokens);
    if (splice.tokens.empty()) continue;
    splices.push_back(splice);
    end = splice.range.end;
  }
  return splices;
}

// The rendered text's tokens, where answers keep the tokens that they were made of.
std::vector<Token> encode_prompt(const tokenize::Tokenizer& tokenizer, const RenderedPrompt& prompt,
                                 std::span<const Splice> splices) {
  std::vector<Token> tokens;
  size_t begin = 0;
  for (const Splice& splice : splices) {
    encode_part(tokenizer, prompt, {begin, splice.range.begin}, tokens);
    tokens.insert(tokens.end(), splice.tokens.begin(), splice.tokens.end());
    begin = splice.range.end;
  }
  encode_part(tokenizer, prompt, {begin, prompt.text.size()}, tokens);
  return tokens;
}

std::vector<int32_t> find_message_starts(const tokenize::Tokenizer& tokenizer,
                                         const chat::RenderedPrompt& prompt,
                                         std::span<const Token> tokens,
                                         std::span<const Message> messages,
                                         std::span<const std::optional<Range>> contents) {
  const std::string spelled = spell(tokenizer, tokens);
  if (!spelled.ends_with(prompt.text)) return {};
  // Some vocabularies put a blank before a text.
  size_t token_end = 0;
  const size_t added_bytes = spelled.size() - prompt.text.size();
  std::vector<int32_t> starts;
  int32_t token = 0;
  for (size_t message = 0; message < messages.size(); ++message) {
    if (messages[message].role != "user" || !contents[message]) continue;
    const size_t begin = contents[message]->begin + added_bytes;
    while (token < int32_t(tokens.size())) {
      const size_t next_end = token_end + tokenizer.piece(tokens[size_t(token)]).size();
      if (next_end > begin) break;
      token_end = next_end;
      ++token;
    }
    starts.push_back(token);
  }
  return starts;
}

}  // namespace

std::string as_utf8(std::string_view bytes) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  std::string out;
  while (true) {
    const size_t valid = unicode::valid_utf8_bytes(bytes);
    out += bytes.substr(0, valid);
    if (valid == bytes.size()) return out;
    out += kReplacement;
    bytes.remove_prefix(valid + 1);
  }
}

Result<RenderedPrompt> render_conversation(const Dialect& dialect,
                                           std::span<const Message> messages,
                                           const PromptOptions& options, bool asks) {
  CAIRN_TRY(RenderedPrompt rendered, render(dialect, messages, options, asks));
  if (asks) add_answer_begin(options, rendered);
  return rendered;
}

Result<Prompt> encode_conversation(const Dialect& dialect, std::span<const Message> messages,
                                   const PromptOptions& options) {
  CHECK(dialect.tokenizer != nullptr && dialect.chat_template != nullptr &&
        dialect.format != nullptr);
  const tokenize::Tokenizer& tokenizer = *dialect.tokenizer;
  CAIRN_TRY(RenderedPrompt rendered, render(dialect, messages, options, true));
  const std::vector<std::optional<Range>> contents = find_contents(rendered, messages);
  const std::vector<Splice> splices = find_splices(dialect, messages, options, rendered, contents);
  add_answer_begin(options, rendered);
  Prompt prompt;
  prompt.tokens = encode_prompt(tokenizer, rendered, splices);
  prompt.message_starts =
      find_message_starts(tokenizer, rendered, prompt.tokens, messages, contents);
  prompt.end =
      rendered.text.substr(rendered.text.size() - std::min(rendered.text.size(), kPromptEndBytes));
  // Most templates write the first token themselves; where they leave it to the model, it is here.
  const std::optional<Token> bos = tokenizer.special_ids().bos;
  const bool starts_with_bos = !prompt.tokens.empty() && prompt.tokens.front() == bos;
  if (tokenizer.adds_bos() && bos && !starts_with_bos) {
    prompt.tokens.insert(prompt.tokens.begin(), *bos);
    for (int32_t& start : prompt.message_starts) ++start;
  }
  if (prompt.tokens.empty()) {
    return fail(ErrorCode::invalid_argument, "prompt: expected at least one token, found none");
  }
  return prompt;
}

void set_reasoning(const ChatFormat& format, ReasoningMode mode, PromptOptions& options) {
  if (mode == ReasoningMode::automatic) return;
  const bool is_on = mode == ReasoningMode::on;
  if (!format.reasoning_switch.empty()) {
    options.switches.emplace_back(format.reasoning_switch, is_on);
    return;
  }
  if (is_on) return;
  if (!format.channels.message_open.empty()) {
    options.answer_begin = format.channels.answer_header;
  } else if (!format.reasoning_close.empty()) {
    if (!format.opens_reasoning) options.answer_begin = format.reasoning_open + "\n";
    options.answer_begin += "\n" + format.reasoning_close + "\n\n";
  }
}

std::string reasoning_end(const ChatFormat& format) {
  const ChannelFormat& channels = format.channels;
  if (!channels.message_open.empty()) {
    if (channels.answer_header.empty() || channels.reasoning_close.empty()) return {};
    return channels.reasoning_close + channels.turn_open + channels.answer_header;
  }
  return format.reasoning_close.empty() ? "" : "\n" + format.reasoning_close + "\n\n";
}

std::string make_call_id(const CallFormat& format, size_t message, size_t call) {
  if (format.id_length == 0) return fmt::format("call_{}_{}", message, call);
  std::string id = fmt::format("{:05}{:04}", message, call);
  return id.substr(id.size() - std::min(id.size(), format.id_length));
}

}  // namespace cairn::chat
