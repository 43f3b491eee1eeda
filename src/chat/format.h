// The output format of a model: how it writes reasoning and tool calls. Data only, made by
// chat/detect.h and used by chat/output_parser.h. White space in a marker matches any white space,
// or none. Knows nothing of tokens. Thread-safe: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cairn::chat {

enum class CallShape : uint8_t {
  none,        // No calls are known.
  object,      // {"name": "f", "arguments": {…}}, alone, several, or in a list.
  arguments,   // A name, then the arguments as a JSON object.
  parameters,  // A name, then each argument's name and value between tags.
  elements,    // A name, then each argument as an element of its own name; they nest.
  python,      // [f(a=1, b='x'), g()]
  braces,      // f{a:1,b:<quote>x<quote>}
};

// How several calls of shape `object` stand together.
enum class CallGrouping : uint8_t {
  each,   // Each with its own opening and close.
  list,   // In one JSON list between them.
  lines,  // One after another between them.
};

enum class CallField : uint8_t { name, id, index };

// A text, and the field that follows it.
struct CallHeaderPart {
  std::string before;
  CallField field = CallField::name;
};

struct CallFormat {
  CallShape shape = CallShape::none;
  std::string section_open, section_close;  // Around all calls; both may be empty.
  // The text before the arguments; the first one opens a call. Of shapes `object` and `python`
  // only that first text is used; if it is empty, a call is recognised by its first bytes.
  std::vector<CallHeaderPart> header;
  std::string arguments_open;  // Between the last field and the arguments.
  std::string close;           // The text after a call; after all calls for `object` and `python`.
  std::string other_open;      // A second text that opens calls, or nothing.

  // Of `object`. A name key that is empty: {"f": {…}}.
  std::string name_key, arguments_key, id_key;
  bool is_id_first = false;  // Before the name; else after the arguments.
  CallGrouping grouping = CallGrouping::each;

  // Of `parameters`: <key_open> key <key_end> [type <type_end>] value <value_close>.
  std::string key_open, key_end, type_end, value_close;
  std::string string_type;  // The type that says: the value is a string as it stands.
  bool has_cdata = false;   // Values may stand in <![CDATA[…]]>.
  bool has_margin = false;  // Each value has a line break before and after it.

  std::string mark;  // Of `braces`: the quote; of `elements`: the text before each tag.

  std::string text_name;              // Called by this name, the "call" is text for the user.
  bool wants_text_arguments = false;  // The template takes arguments as a string of JSON…
  bool wants_null_content = false;    // … and no content but null beside calls.
  size_t id_length = 0;  // Where the template only takes ids of so many letters and digits.
};

// Messages inside of one answer: a header, a text, an end (gpt-oss).
struct ChannelFormat {
  std::string message_open;                // Ends a header. Empty: there are no channels.
  std::vector<std::string> message_close;  // End a message; a header follows.
  std::string turn_open;                   // What the template writes to have an answer begun.
  std::string answer_header;               // What follows it where the answer is text for the user.
  std::string reasoning_close;             // What ends a message of reasoning.
};

struct ChatFormat {
  CallFormat call;
  std::string reasoning_open, reasoning_close;  // Empty: reasoning is not recognised.
  std::vector<std::string> silent;              // Stands around text and is not part of it.
  ChannelFormat channels;
  // A variable of the template that switches reasoning; empty where there is none.
  std::string reasoning_switch;
  bool opens_reasoning = false;  // The generation prompt leaves the model within its reasoning.
  bool is_undetected = false;    // The template needs too much work to find anything out.
};

// A few words for people: "object <tool_call>…</tool_call>", …
std::string describe_calls(const CallFormat& format);
std::string describe_reasoning(const ChatFormat& format);

}  // namespace cairn::chat
