// Formats found in other people's templates, compared with the table of
// docs/tools-and-reasoning.md.
#include "chat/detect.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "chat/probe.h"
#include "tests/chat/template_fixtures.h"

namespace cairn::chat::detect_test {
namespace {

std::string row(const std::string& name, const ChatFormat& format) {
  const auto cell = [](std::string text) {
    for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
      text.insert(at, "\\");
    }
    const std::string quote = text.find('`') == std::string::npos ? "`" : "```` ";
    const std::string end(quote.rbegin(), quote.rend());
    return text == "none" ? text : quote + text + end;
  };
  return "| " + name + " | " + cell(describe_calls(format.call)) + " | " +
         cell(describe_reasoning(format)) + " | " +
         (format.reasoning_switch.empty() ? "" : "`" + format.reasoning_switch + "`") + " |";
}

TEST(Detect, EveryTemplateHasItsRowInTheDocs) {
  const auto templates = shared_templates();
  if (templates.empty()) GTEST_SKIP() << "no shared fixtures here";
  std::ifstream file(std::string(CAIRN_SOURCE) + "/docs/tools-and-reasoning.md");
  std::stringstream docs;
  docs << file.rdbuf();
  std::string missing;
  int with_calls = 0, with_reasoning = 0;
  for (const auto& [name, chat_template] : templates) {
    const ChatFormat format = detect(chat_template);
    EXPECT_FALSE(format.is_undetected) << name;
    with_calls += format.call.shape != CallShape::none;
    with_reasoning += !format.reasoning_close.empty() || !format.channels.message_open.empty();
    const std::string line = row(name, format);
    if (docs.str().find(line + "\n") == std::string::npos) missing += line + "\n";
  }
  EXPECT_TRUE(missing.empty()) << "docs/tools-and-reasoning.md lacks these rows:\n" << missing;
  EXPECT_EQ(templates.size(), 70u);
  std::printf("templates: %zu, with calls: %d, with reasoning: %d\n", templates.size(), with_calls,
              with_reasoning);
}

chat::ChatTemplate parsed(std::string_view source) {
  auto made = chat::ChatTemplate::parse(source);
  CHECK(made);
  return std::move(made).value();
}

TEST(Detect, ATemplateWithoutCallsHasNone) {
  const ChatFormat format =
      detect(parsed("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
                    "{% if add_generation_prompt %}<|assistant|>{% endif %}"));
  EXPECT_EQ(format.call.shape, CallShape::none);
  EXPECT_EQ(describe_reasoning(format), "none");
  EXPECT_TRUE(format.silent.empty());
  EXPECT_TRUE(format.reasoning_switch.empty());
  EXPECT_FALSE(format.opens_reasoning);
}

// Forms that no fixture has: what matters is what a template does, not what it is called.
TEST(Detect, AnInventedTemplateIsUnderstood) {
  const ChatFormat format = detect(parsed(
      "{% for m in messages %}[{{ m.role }}]\n"
      "{% if m.reasoning_content %}<hm>{{ m.reasoning_content }}</hm>\n{% endif %}"
      "{{ m.content }}"
      "{% for c in m.tool_calls or [] %}\n<do it=\"{{ c.function.name }}\">"
      "{% for k, v in c.function.arguments.items() %}<with {{ k }}>{{ v }}</with>{% endfor %}"
      "</do>{% endfor %}[/{{ m.role }}]\n{% endfor %}"
      "{% if add_generation_prompt %}[assistant]\n{% if enable_thinking %}<hm>{% endif %}{% endif "
      "%}"));
  EXPECT_EQ(describe_calls(format.call), "<do it=\"NAME\"><with KEY>VALUE</with></do>");
  EXPECT_EQ(describe_reasoning(format), "<hm>…</hm>");
  EXPECT_EQ(format.reasoning_switch, "enable_thinking");
}

// All renders of a detection share the budget of one, so a template costs no more to load than to
// render once, whatever it does; what honest templates do is far below it.
TEST(Detect, ATemplateCannotSpendItsBudgetManyTimes) {
  const std::string endless =
      "{% for i in range(100000) %}{% for j in range(100000) %}{% set x = 1 %}{% endfor %}"
      "{% endfor %}";
  for (const std::string& source : std::vector<std::string>{
           endless, "{{ messages[0].content }}{% set a = 'x' * 8000000 %}{{ a }}",
           "{% if tools %}" + endless + "{% endif %}{{ messages[0].content }}"}) {
    const chat::ChatTemplate hostile = parsed(source);
    Prober prober(hostile);
    int renders = 0;
    while (!prober.is_spent() && renders < 100'000) {
      prober.turn({.has_tools = true});
      ++renders;
    }
    EXPECT_LT(renders, 10) << source.substr(0, 60);
    EXPECT_TRUE(detect(hostile).is_undetected) << source.substr(0, 60);
  }
}

}  // namespace
}  // namespace cairn::chat::detect_test
