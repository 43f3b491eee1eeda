// The grammar of answers with tool calls: calls in the model's format, with arguments that the
// tools' schemas allow, or plain text. chat/output_parser.h parses every text of this grammar into
// calls that are valid by the schemas. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "chat/format.h"
#include "chat/tools.h"
#include "grammar/grammar.h"
#include "tokenize/tokenizer.h"

namespace cairn::chat {

// In the words of OpenAI's tool_choice.
enum class ToolChoice : uint8_t {
  automatic,  // Text, calls, or text and then calls.
  none,       // Text; no call begins in it.
  required,   // One call or more.
  named,      // One call of one tool.
};

struct CallDemand {
  ToolChoice choice = ToolChoice::automatic;
  std::string name = {};             // Of `named`.
  int32_t call_count_max = 16;       // Of all but `named`.
  std::string_view prompt_end = {};  // What the answer goes on with: ParserOptions::prompt.
};

// The grammar of an answer without its reasoning: after the marker that opens reasoning the grammar
// goes on with what follows its end. `tokenizer`: which marks are tokens; null where all is text.
// Errors: invalid_argument: no such tool, or a schema that is none; unsupported, naming what: no
// form is known, or the form cannot keep a schema exactly.
Result<grammar::Grammar> call_grammar(const ChatFormat& format, std::span<const Tool> tools,
                                      const CallDemand& demand,
                                      const tokenize::Tokenizer* tokenizer);

}  // namespace cairn::chat
