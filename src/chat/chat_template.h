// A model's chat template: messages in, prompt out, with the origin of every byte, so that special
// tokens count only where the template itself wrote them (docs/chat-templates.md). Renders as
// Hugging Face transformers does. Knows nothing of tokens, files or requests.
// Once parsed, a ChatTemplate only reads: any thread may render, several at once.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "jinja/builtins/strftime.h"
#include "jinja/values/marked_text.h"
#include "jinja/values/value.h"

namespace cairn::jinja {
class WorkBudget;
struct Tree;
}  // namespace cairn::jinja

namespace cairn::chat {

struct ChatInput {
  jinja::Value messages;                      // A list of dicts, from jinja::parse_json().
  jinja::Value tools = jinja::Value::none();  // A list of dicts, or none.
  jinja::Value documents = jinja::Value::none();
  bool add_generation_prompt = true;
  std::string bos_token;  // Texts of the vocabulary's tokens: they are trusted.
  std::string eos_token;
  // Further variables, such as enable_thinking. May not name those above, nor options of the
  // engine: Status check_variables(). Trusted only where the value itself is.
  std::vector<std::pair<std::string, jinja::Value>> variables;
  std::optional<jinja::CivilTime> clock;  // What strftime_now tells; without it that is an error.
};

struct RenderedPrompt {
  std::string text;
  // Neighbours differ in origin; together they cover the text. Special tokens are to be
  // recognised only inside trusted spans, everything else is one text.
  std::vector<jinja::OriginSpan> spans;
};

// Error (invalid_argument): a name that a client may not set.
Status check_variables(std::span<const std::pair<std::string, jinja::Value>> variables);

class ChatTemplate {
 public:
  // Errors: invalid_data (syntax, with line and column; not UTF-8), no_room (a budget).
  static Result<ChatTemplate> parse(std::string_view source);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // Errors: invalid_argument (the template's own raise_exception, whose text is passed on, or a
  // reserved variable), no_room (a budget), unsupported (any other failure of the template).
  Result<RenderedPrompt> render(const ChatInput& input) const;
  // The same within a budget that other renders share.
  Result<RenderedPrompt> render(const ChatInput& input, jinja::WorkBudget& budget) const;

  // Whether the source speaks of this name (such as `tools` or `enable_thinking`) anywhere.
  bool mentions(std::string_view name) const;

  const std::string& source() const { return source_; }

 private:
  ChatTemplate(std::unique_ptr<const jinja::Tree> tree, std::string source);

  std::unique_ptr<const jinja::Tree> tree_;
  std::string source_;
};

}  // namespace cairn::chat
