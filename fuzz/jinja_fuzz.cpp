// The chat template engine on hostile sources: parse, then render one small conversation, or the
// one that stands behind a zero byte. The engine's own budgets must bound time and memory; all
// results are good but a crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "chat/chat_template.h"
#include "jinja/values/json_value.h"
#include "jinja/work_budget.h"

namespace {

constexpr std::string_view kMessages =
    R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Hi <b>é</b>\n|x|"},)"
    R"({"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f",)"
    R"("arguments":{"a":1,"b":[1.5,true,null]}}}]},{"role":"tool","content":"4"}])";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view source = text.substr(0, text.find('\0'));
  auto parsed = cairn::chat::ChatTemplate::parse(source);
  if (!parsed) return 0;
  cairn::chat::ChatInput input;
  auto messages = cairn::jinja::parse_json(
      source.size() == text.size() ? kMessages : text.substr(source.size() + 1));
  if (!messages) return 0;
  input.messages = *messages;
  input.tools = *messages;
  input.bos_token = "<s>";
  input.clock = cairn::jinja::CivilTime{2026, 3, 14, 9, 26, 53};
  // A small part of the work that a render may do: loops without end are short.
  cairn::jinja::WorkBudget budget(20'000);
  auto prompt = (*parsed).render(input, budget);
  if (!prompt) return 0;
  size_t covered = 0;
  for (const cairn::jinja::OriginSpan& span : prompt->spans) {
    CHECK(span.begin == covered && span.end > span.begin);
    covered = span.end;
  }
  CHECK(covered == prompt->text.size());
  return 0;
}
