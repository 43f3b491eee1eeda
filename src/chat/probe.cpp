// Messages as JSON, rendered.
#include "chat/probe.h"

#include "jinja/values/json_value.h"

namespace cairn::chat {

namespace {

constexpr std::string_view kUser = "PROBEQUESTION";
// Turns of probes have a few hundred bytes, and what is compared with them costs more than a look
// at each byte.
constexpr size_t kTurnBytesMax = 16 << 10;
constexpr size_t kReadingWork = 8;  // For each byte of a rendered text.
// The tools are described with every field that some template asks for.
constexpr std::string_view kTools =
    R"([{"type":"function","function":{"name":"probe_alpha","description":"d","parameters":{)"
    R"("type":"object","properties":{"keyfirst":{"type":"string","description":"d"},)"
    R"("keysecond":{"type":"integer","description":"d"}},"required":["keyfirst"]}}},)"
    R"({"type":"function","function":{"name":"probe_omega","description":"d","parameters":{)"
    R"("type":"object","properties":{"keyother":{"type":"string","description":"d"}},)"
    R"("required":["keyother"]}}}])";
constexpr std::string_view kArguments[2] = {R"({"keyfirst": "valuefirst", "keysecond": 24680})",
                                            R"({"keyother": "valueother"})"};

std::string escaped(std::string_view json) {
  std::string text = "\"";
  for (const char letter : json) {
    if (letter == '"') text += '\\';
    text += letter;
  }
  return text + "\"";
}

std::string call_json(const Probe& probe, int call) {
  const std::string arguments =
      probe.is_text_arguments ? escaped(kArguments[call]) : std::string(kArguments[call]);
  return fmt::format(R"({{"id":"{}","type":"function","function":{{"name":"{}","arguments":{}}}}})",
                     probe.ids[call], kProbeNames[call], arguments);
}

std::string message_json(const Probe& probe) {
  std::string json = R"({"role":"assistant","content":)";
  if (probe.has_content) {
    json += fmt::format("\"{}\"", kProbeContent);
  } else {
    json += probe.is_null_content ? "null" : "\"\"";
  }
  if (probe.has_reasoning) {
    for (const char* name : {"reasoning_content", "reasoning", "thinking"}) {
      json += fmt::format(R"(,"{}":"{}")", name, kProbeReasoning);
    }
  }
  for (int call = 0; call < probe.call_count; ++call) {
    json += (call == 0 ? R"(,"tool_calls":[)" : ",") + call_json(probe, call);
  }
  return json + (probe.call_count > 0 ? "]}" : "}");
}

}  // namespace

std::optional<std::string> Prober::turn(const Probe& probe) {
  return render(fmt::format(R"([{{"role":"user","content":"{}"}},{}])", kUser, message_json(probe)),
                probe, false);
}

std::optional<std::string> Prober::prompt(const Probe& probe) {
  return render(fmt::format(R"([{{"role":"user","content":"{}"}}])", kUser), probe, true);
}

std::optional<std::string> Prober::render(const std::string& messages, const Probe& probe,
                                          bool adds_prompt) {
  if (is_spent()) return std::nullopt;
  chat::ChatInput input;
  auto list = jinja::parse_json(messages);
  CHECK(list);
  input.messages = std::move(list).value();
  if (probe.has_tools) {
    auto tools = jinja::parse_json(kTools);
    CHECK(tools);
    input.tools = std::move(tools).value();
  }
  input.add_generation_prompt = adds_prompt;
  input.clock = jinja::CivilTime{};
  if (!probe.switch_name.empty()) {
    input.variables.emplace_back(probe.switch_name, jinja::Value::boolean(probe.switch_value));
  }
  Result<chat::RenderedPrompt> rendered = template_.render(input, budget_);
  if (!rendered || !budget_.work(rendered->text.size() * kReadingWork)) return std::nullopt;
  const size_t user = rendered->text.rfind(kUser);
  if (user == std::string::npos) return std::nullopt;
  std::string turn = rendered->text.substr(user + kUser.size());
  if (turn.size() > kTurnBytesMax) return std::nullopt;
  return turn;
}

}  // namespace cairn::chat
