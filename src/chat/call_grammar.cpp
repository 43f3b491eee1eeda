// The six shapes of calls out of the format's pieces, and what stands around them.
#include "chat/call_grammar.h"

#include <algorithm>

#include "chat/cdata.h"
#include "chat/loose_match.h"
#include "chat/marker_nodes.h"
#include "chat/value_grammar.h"
#include "unicode/unicode.h"

namespace cairn::chat {

namespace {

using grammar::CharacterSet;
using grammar::kUnbounded;
using grammar::Node;

constexpr size_t kNameBytesMax = 64;

bool is_name(std::string_view name) {
  const auto is_letter = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '_' || letter == '.' || letter == '-';
  };
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::all_of(name.begin(), name.end(), is_letter);
}

CharacterSet word_letters() {
  return {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}};
}

class CallWriter {
 public:
  CallWriter(const CallFormat& format, MarkerNodes* markers)
      : format_(format),
        markers_(*markers),
        b_(markers->builder()),
        values_(markers, {.mark = format.mark,
                          .never = std::string(trimmed(format.close)),
                          .end = std::string(trimmed(format.value_close))}) {}

  // A call from its opening to its close; `has_opening` false where the prompt has written it.
  Result<Node> call(const Tool& tool, bool has_opening) {
    CAIRN_TRY(values_.enter(tool));
    if (!is_name(tool.name)) return values_.refuse(fmt::format("the name \"{}\"", tool.name));
    switch (format_.shape) {
      case CallShape::object:
        return object(tool);
      case CallShape::arguments:
        return with_header(tool, has_opening, [&] { return json_arguments(); });
      case CallShape::parameters:
        return with_header(tool, has_opening, [&] { return parameters(tool); });
      case CallShape::elements:
      case CallShape::braces:
        return with_header(tool, has_opening, [&] { return members(); });
      case CallShape::python:
        return python(tool);
      case CallShape::none:
        break;
    }
    return fail(ErrorCode::unsupported, "tools: expected a form for calls, found none");
  }

  // `one`: any of the calls; up to `count_max` of them. `begun`: the same without its opening, for
  // the first.
  Node calls(Node one, Node begun, int32_t count_max) {
    const Node blanks = markers_.blanks();
    const Node open = format_.header.empty() ? b_.empty() : opening();
    const Node close = markers_.trimmed(format_.close);
    if (format_.shape == CallShape::python) {
      const Node comma = b_.sequence({b_.text(","), blanks});
      return b_.sequence({open, blanks, b_.text("["), several(one, one, comma, count_max),
                          b_.text("]"), blanks, close});
    }
    if (format_.shape != CallShape::object) {
      const Node all = several(begun, one, blanks, count_max);
      if (trimmed(format_.section_open).empty()) return all;
      return b_.sequence({markers_.trimmed(format_.section_open), blanks, all, blanks,
                          markers_.trimmed(format_.section_close)});
    }
    if (format_.grouping == CallGrouping::list) {
      const Node comma = b_.sequence({b_.text(","), blanks});
      return b_.sequence({open, blanks, b_.text("["), blanks, several(one, one, comma, count_max),
                          blanks, b_.text("]"), blanks, close});
    }
    if (format_.grouping == CallGrouping::lines) {
      return b_.sequence({open, blanks, several(one, one, blanks, count_max), blanks, close});
    }
    const Node whole = b_.sequence({open, blanks, one, blanks, close});
    const bool is_bare = trimmed(format_.header[0].before).empty();
    return several(whole, whole, blanks, is_bare ? 1 : count_max);
  }

  Result<Node> json_arguments() { return values_.arguments(); }

 private:
  Node several(Node first, Node other, Node between, int32_t count_max) {
    return b_.sequence({first, b_.repeat(b_.sequence({between, other}), 0, count_max - 1)});
  }

  // What opens a call of the shapes `object` and `python`.
  Node opening() {
    const Node own = markers_.trimmed(format_.header[0].before);
    if (format_.other_open.empty()) return own;
    return b_.choice({own, markers_.trimmed(format_.other_open)});
  }

  Node call_id() {
    const auto length = int32_t(format_.id_length);
    if (length > 0) return b_.repeat(b_.characters(word_letters()), length, length);
    CharacterSet letters = word_letters();
    for (const char letter : std::string_view("_-.:")) letters.add(char32_t(letter));
    return b_.repeat(b_.characters(letters), 1, kNameBytesMax);
  }

  // "key": value
  Node member(std::string_view key, Node value) {
    return b_.sequence({b_.json_text(key), b_.text(":"), b_.optional(b_.text(" ")), value});
  }

  Result<Node> object(const Tool& tool) {
    const Node blanks = markers_.blanks();
    const Node comma = b_.sequence({b_.text(","), blanks});
    CAIRN_TRY(const Node arguments, json_arguments());
    std::vector<Node> parts = {b_.text("{"), blanks};
    const Node id =
        format_.id_key.empty()
            ? b_.empty()
            : member(format_.id_key, b_.sequence({b_.text("\""), call_id(), b_.text("\"")}));
    if (format_.name_key.empty()) {
      parts.push_back(member(tool.name, arguments));
    } else {
      if (format_.is_id_first) parts.push_back(b_.optional(b_.sequence({id, comma})));
      parts.push_back(member(format_.name_key, b_.json_text(tool.name)));
      parts.push_back(comma);
      parts.push_back(member(format_.arguments_key, arguments));
      if (!format_.id_key.empty() && !format_.is_id_first) {
        parts.push_back(b_.optional(b_.sequence({comma, id})));
      }
    }
    parts.push_back(blanks);
    parts.push_back(b_.text("}"));
    return b_.sequence(parts);
  }

  template <class Make>
  Result<Node> with_header(const Tool& tool, bool has_opening, const Make& make) {
    std::vector<Node> parts;
    for (size_t part = 0; part < format_.header.size(); ++part) {
      const CallHeaderPart& one = format_.header[part];
      if (part > 0) parts.push_back(markers_.marker(one.before));
      if (part == 0 && has_opening) parts.push_back(markers_.trimmed(one.before));
      switch (one.field) {
        case CallField::name:
          parts.push_back(b_.text(tool.name));
          break;
        case CallField::id:
          parts.push_back(call_id());
          break;
        case CallField::index:
          parts.push_back(b_.repeat(b_.characters({{'0', '9'}}), 1, 3));
          break;
      }
    }
    parts.push_back(markers_.marker(format_.arguments_open));
    CAIRN_TRY(const Node arguments, make());
    const bool is_whole = format_.shape == CallShape::braces;
    if (!is_whole) parts.push_back(markers_.blanks());
    parts.push_back(arguments);
    if (!is_whole) parts.push_back(markers_.blanks());
    parts.push_back(markers_.trimmed(format_.close));
    return b_.sequence(parts);
  }

  Result<Node> members() {
    const bool is_braces = format_.shape == CallShape::braces;
    CAIRN_TRY(std::vector<Parameter> properties, values_.properties());
    CAIRN_TRY(const Node content,
              values_.members(is_braces ? ValueForm::braces : ValueForm::elements,
                              std::move(properties), 0));
    return is_braces ? b_.sequence({content, b_.text("}")}) : content;
  }

  Result<Node> python(const Tool& tool) {
    CAIRN_TRY(std::vector<Parameter> properties, values_.properties());
    CAIRN_TRY(const Node content, values_.members(ValueForm::python, std::move(properties), 0));
    return b_.sequence({b_.text(tool.name + "("), content, b_.text(")")});
  }

  Result<Node> parameters(const Tool& tool) {
    CAIRN_TRY(const std::vector<Parameter> properties, values_.properties());
    std::vector<Node> parts;
    for (const Parameter& property : properties) {
      values_.name_parameter(property.name);
      CAIRN_TRY(const Node value, parameter(tool.type_of(property.name), property.schema));
      const Node key = b_.sequence({markers_.trimmed(format_.key_open), b_.text(property.name),
                                    markers_.trimmed(format_.key_end), value});
      const Node one = b_.sequence({key, markers_.blanks()});
      parts.push_back(property.is_required ? one : b_.optional(one));
    }
    values_.name_parameter("");
    return b_.sequence(parts);
  }

  // From behind the key to behind the value.
  Result<Node> parameter(ParameterType type, Schema schema) {
    const bool is_string = type == ParameterType::string;
    CAIRN_TRY(const Node type_name, written_type(is_string, schema));
    const Node margin = format_.has_margin ? b_.text("\n") : b_.empty();
    const Node close = markers_.trimmed(format_.value_close);
    const std::string end(trimmed(format_.value_close));
    if (!is_string) {
      CAIRN_TRY(const Node value, other_value(schema));
      return b_.sequence({type_name, margin, markers_.blanks(), value, markers_.blanks(), close});
    }
    CAIRN_TRY(const Node content, values_.text(schema, {end}));
    // A line break before the end is none of the value's: any text may do without it.
    const Node last = is_free_text(schema) ? b_.optional(margin) : margin;
    if (!format_.has_cdata) return b_.sequence({type_name, margin, content, last, close});
    // What begins like a quotation is one, whose end is its own.
    CAIRN_TRY(const Node quoted, values_.text(schema, {std::string(kCdataClose)}));
    const CharacterSet mark = {{char32_t(kCdataOpen[0]), char32_t(kCdataOpen[0])}};
    const Node quotation = b_.sequence({b_.text(kCdataOpen), quoted, b_.text(kCdataClose), close});
    if (!is_free_text(schema)) return b_.choice({quotation, b_.sequence({content, close})});
    const Node plain = b_.optional(b_.sequence({b_.characters(mark.inverse()), content}));
    return b_.choice({quotation, b_.sequence({plain, close})});
  }

  bool is_free_text(Schema schema) const {
    for (const std::string_view key :
         {"enum", "const", "pattern", "format", "minLength", "maxLength"}) {
      if (values_.has(schema, key)) return false;
    }
    return true;
  }

  // JSON; where templates write Python's literals instead, those too.
  Result<Node> other_value(Schema schema) {
    CAIRN_TRY(const Node json, values_.json(schema));
    const std::string_view type = values_.type_name(schema);
    const bool is_listed = values_.has(schema, "enum") || values_.has(schema, "const");
    if (is_listed || (type != "boolean" && type != "array")) return json;
    Result<Node> python = values_.value(ValueForm::python, schema);
    return python ? b_.choice({json, *python}) : json;
  }

  // What some forms say of a value's type, and what ends it.
  Result<Node> written_type(bool is_string, Schema schema) {
    if (format_.type_end.empty()) return b_.empty();
    std::vector<Node> names;
    if (is_string) {
      names.push_back(b_.text(format_.string_type));
    } else if (format_.string_type == "true") {
      names.push_back(b_.text("false"));
    } else if (format_.string_type == "string") {
      const std::string_view type = values_.type_name(schema);
      for (const char* name : {"number", "boolean", "object", "array", "null"}) {
        const bool is_other = !type.empty() && type != name;
        if (is_other && !(type == "integer" && std::string_view(name) == "number")) continue;
        names.push_back(b_.text(name));
      }
    } else {
      return values_.refuse(fmt::format("a type beside \"{}\"", format_.string_type));
    }
    return b_.sequence({b_.choice(names), markers_.marker(format_.type_end)});
  }

  const CallFormat& format_;
  MarkerNodes& markers_;
  grammar::Builder& b_;
  ValueGrammar values_;
};

class AnswerWriter {
 public:
  AnswerWriter(const ChatFormat& format, const CallDemand& demand, MarkerNodes* markers)
      : format_(format), demand_(demand), markers_(*markers), b_(markers->builder()) {}

  Result<Node> answer(std::span<const Tool> tools) {
    const bool has_channels = !format_.channels.message_open.empty();
    if (demand_.choice == ToolChoice::none) return has_channels ? channel_text() : text_alone();
    if (has_channels) return channels(tools);
    CallWriter writer(format_.call, &markers_);
    std::vector<Node> whole, begun;
    for (const Tool& tool : tools) {
      CAIRN_TRY(const Node one, writer.call(tool, true));
      whole.push_back(one);
      if (!is_opened()) continue;
      CAIRN_TRY(const Node rest, writer.call(tool, false));
      begun.push_back(rest);
    }
    const grammar::Rule rule = b_.declare("call");
    b_.define(rule, b_.choice(whole));
    const Node one = b_.call(rule);
    const Node calls = writer.calls(one, one, count_max());
    const Node first = is_opened() ? writer.calls(one, b_.choice(begun), count_max()) : calls;
    const Node blanks = markers_.blanks();
    const bool is_free = demand_.choice == ToolChoice::automatic;
    if (is_opened()) return is_free ? opened_text(first) : first;
    if (!is_free) return b_.sequence({prelude(), blanks, first});
    if (is_bare()) return b_.sequence({prelude(), b_.choice({first, bare_text()})});
    const Node some = b_.optional(b_.sequence({blanks, calls}));
    return b_.sequence({prelude(), free_text(), silent(), some});
  }

 private:
  int32_t count_max() const {
    return demand_.choice == ToolChoice::named ? 1 : demand_.call_count_max;
  }
  std::string_view opening() const {
    return format_.call.header.empty() ? std::string_view()
                                       : trimmed(format_.call.header[0].before);
  }
  // The prompt has written the first opening: text has a name as calls have.
  bool is_opened() const {
    return !format_.call.text_name.empty() && !opening().empty() &&
           trimmed_right(demand_.prompt_end).ends_with(opening());
  }
  bool is_bare() const { return opening().empty() && format_.call.section_open.empty(); }

  // The first words of what begins calls: text holds none of them.
  std::vector<std::string> openings() const {
    std::vector<std::string> all;
    for (const std::string_view text : {std::string_view(format_.call.section_open), opening(),
                                        std::string_view(format_.call.other_open)}) {
      if (!first_word(text).empty()) all.emplace_back(first_word(text));
    }
    return all;
  }

  Node silent() {
    std::vector<Node> ways;
    for (const std::string& text : format_.silent) ways.push_back(markers_.trimmed(text));
    if (ways.empty()) return b_.empty();
    const Node one = b_.sequence({markers_.blanks(), b_.choice(ways)});
    return b_.repeat(one, 0, int32_t(ways.size()));
  }

  // What opens reasoning, or closes one that the prompt has opened or left out; what stands around
  // text.
  Node prelude() {
    std::vector<Node> ways = {b_.empty()};
    for (const std::string* mark : {&format_.reasoning_open, &format_.reasoning_close}) {
      if (!mark->empty()) ways.push_back(markers_.trimmed(*mark));
    }
    return b_.sequence({markers_.blanks(), b_.choice(ways), silent()});
  }

  Node free_text() { return markers_.without(openings()); }

  Node bare_text() {
    const char32_t first = format_.call.shape == CallShape::python ? '[' : '{';
    const CharacterSet spaces = {{' ', ' '}, {'\n', '\n'}, {'\t', '\t'}, {'\r', '\r'}};
    CharacterSet others = spaces;
    others.add(first);
    return b_.sequence({b_.repeat(b_.characters(spaces), 0, kUnbounded),
                        b_.optional(b_.sequence({b_.characters(others.inverse()), free_text()}))});
  }

  Node text_alone() {
    if (is_opened()) return b_.sequence({b_.text(format_.call.text_name + "\n"), free_text()});
    return b_.sequence({prelude(), is_bare() ? bare_text() : free_text(), silent()});
  }

  Node opened_text(Node first) {
    const Node said = b_.text(format_.call.text_name + "\n");
    const Node then = b_.sequence({markers_.until(opening()), first});
    return b_.choice({first, b_.sequence({said, free_text()}), b_.sequence({said, then})});
  }

  // Messages with headers: reasoning first, then text or calls in messages of their own.
  Result<Node> channels(std::span<const Tool> tools) {
    CallWriter writer(format_.call, &markers_);
    std::vector<Node> calls;
    for (const Tool& tool : tools) {
      CAIRN_TRY(const Node call, channel_call(writer, tool));
      calls.push_back(call);
    }
    std::vector<Node> ways = {b_.choice(calls)};
    if (demand_.choice == ToolChoice::automatic) {
      CAIRN_TRY(const Node text, channel_message());
      ways.push_back(text);
    }
    return behind_reasoning(b_.choice(ways));
  }

  Result<Node> channel_call(CallWriter& writer, const Tool& tool) {
    const Node open = markers_.marker(format_.channels.message_open);
    CAIRN_TRY(const Node call, writer.call(tool, true));
    if (format_.call.shape != CallShape::arguments) {
      const Node header = b_.text(" to=" + tool.name);
      return b_.sequence({header, open, writer.calls(call, call, 1)});
    }
    CAIRN_TRY(const Node arguments, writer.json_arguments());
    // As the template writes it, and as models do.
    const std::string recipient = " to=functions." + tool.name;
    const Node header = b_.choice(
        {b_.sequence({b_.text(recipient), markers_.marker("<|channel|>commentary json")}),
         b_.sequence({markers_.marker("<|channel|>commentary" + recipient + " <|constrain|>json")}),
         b_.sequence({markers_.marker("<|channel|>commentary" + recipient + " json")})});
    return b_.sequence({header, open, arguments});
  }

  Result<Node> channel_message() {
    if (format_.channels.answer_header.empty()) {
      return fail(ErrorCode::unsupported, "tools: expected how an answer begins, found nothing");
    }
    std::vector<std::string> never = openings();
    for (const std::string& close : format_.channels.message_close) never.push_back(close);
    return b_.sequence({markers_.marker(format_.channels.answer_header), markers_.without(never)});
  }

  Result<Node> channel_text() {
    CAIRN_TRY(const Node text, channel_message());
    return behind_reasoning(text);
  }

  Node behind_reasoning(Node message) {
    const bool is_harmony = format_.call.shape == CallShape::arguments;
    const std::string header = is_harmony ? "<|channel|>analysis" : " to=self";
    const Node reasoning = b_.sequence({markers_.marker(header + format_.channels.message_open),
                                        markers_.marker(format_.channels.turn_open)});
    return b_.sequence({b_.optional(reasoning), message});
  }

  const ChatFormat& format_;
  const CallDemand& demand_;
  MarkerNodes& markers_;
  grammar::Builder& b_;
};

// Templates are other people's, and pieces of their output may end within a character.
Status check_marks(const CallFormat& call) {
  std::vector<std::string_view> marks = {call.section_open, call.other_open, call.close, call.mark,
                                         call.value_close};
  for (const CallHeaderPart& part : call.header) marks.push_back(part.before);
  for (const std::string_view mark : marks) {
    if (unicode::valid_utf8_bytes(mark) == mark.size()) continue;
    return fail(ErrorCode::unsupported,
                "tokenizer.chat_template: expected marks of calls in UTF-8, found other bytes");
  }
  return Ok{};
}

}  // namespace

Result<grammar::Grammar> call_grammar(const ChatFormat& format, std::span<const Tool> tools,
                                      const CallDemand& demand,
                                      const tokenize::Tokenizer* tokenizer) {
  if (format.call.shape == CallShape::none) {
    return fail(ErrorCode::unsupported, "tools: expected a form for calls, found none");
  }
  if (tools.empty()) return fail(ErrorCode::invalid_argument, "tools: expected one, found none");
  if (demand.choice == ToolChoice::named) {
    const auto named = std::find_if(tools.begin(), tools.end(),
                                    [&](const Tool& tool) { return tool.name == demand.name; });
    if (named == tools.end()) {
      return fail(ErrorCode::invalid_argument, "tool choice: expected a tool's name, found \"{}\"",
                  demand.name);
    }
    tools = tools.subspan(size_t(named - tools.begin()), 1);
  }
  CAIRN_TRY(check_marks(format.call));
  grammar::Builder builder;
  MarkerNodes markers(&builder, tokenizer);
  CAIRN_TRY(const Node answer, AnswerWriter(format, demand, &markers).answer(tools));
  return builder.finish(answer);
}

}  // namespace cairn::chat
