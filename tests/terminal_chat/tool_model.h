// The built-in model with a template that knows calls, reasoning and a switch for it. For tests
// only.
#pragma once

#include <cstring>
#include <string>

#include "tests/cli/run_program.h"

namespace cairn::terminal_chat {

using cli::run_program;
using test::contents_of;
using test::write_to;

inline constexpr char kToolTemplate[] =
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<c>{{ c.function | tojson }}</c>{% endfor %}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>"
    "{% if enable_thinking %}<think>{% endif %}{% endif %}{# </think> #}";

// The built-in model's file with another template. Padded within the comment that ends it, so that
// what follows keeps its alignment.
inline void write_model(const std::string& path, std::string chat_template) {
  std::string model = contents_of(std::string(CAIRN_SOURCE) + "/assets/nano.gguf");
  const std::string key = "tokenizer.chat_template";
  const size_t length_at = model.find(key) + key.size() + 4;  // Behind the value's type.
  uint64_t old_length = 0;
  std::memcpy(&old_length, model.data() + length_at, sizeof old_length);
  while (chat_template.size() % 32 != old_length % 32) {
    chat_template.insert(chat_template.rfind("#}"), " ");
  }
  const uint64_t length = chat_template.size();
  std::memcpy(model.data() + length_at, &length, sizeof length);
  model.replace(length_at + sizeof length, old_length, chat_template);
  write_to(path, model);
}

}  // namespace cairn::terminal_chat
