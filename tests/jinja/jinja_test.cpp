// The template language: goldens whose expected texts come from Jinja2 3.1.6 set up as
// transformers does (tests/jinja/cases/jinja.json), and what goldens cannot show.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

#include "jinja/interpreter.h"
#include "jinja/syntax/parser.h"
#include "jinja/values/json_value.h"
#include "jinja/values/text_form.h"

namespace cairn::jinja::jinja_test {
namespace {

std::vector<Variable> variables_of(const Value& dict) {
  std::vector<Variable> variables;
  for (const auto& [key, value] : dict.as<DictObject>().entries) {
    variables.emplace_back(std::string(key.text()), value);
  }
  return variables;
}

Result<MarkedText> run(std::string_view source, std::span<const Variable> variables = {}) {
  CAIRN_TRY(const std::unique_ptr<const Tree> tree, parse(source));
  return render(*tree, variables, std::nullopt);
}

std::string text_of_run(std::string_view source, std::span<const Variable> variables = {}) {
  auto made = run(source, variables);
  return made ? std::string(made->bytes()) : fmt::format("error: {}", made.error().message);
}

TEST(Jinja, Goldens) {
  std::ifstream file(CAIRN_SOURCE "/tests/jinja/cases/jinja.json");
  std::stringstream json;
  json << file.rdbuf();
  auto parsed = parse_json(json.str());
  ASSERT_TRUE(parsed) << parsed.error().message;
  const DictObject& all = (*parsed).as<DictObject>();
  const std::vector<Variable> variables = variables_of(*all.find("input"));
  size_t count = 0;
  for (const Value& item : all.find("cases")->items()) {
    const DictObject& one = item.as<DictObject>();
    const std::string_view source = one.find("template")->text();
    auto made = run(source, variables);
    if (const Value* expected = one.find("expected")) {
      ASSERT_TRUE(made) << source << "\n" << made.error().message;
      EXPECT_EQ(made->bytes(), expected->text()) << source;
    } else {
      ASSERT_FALSE(made) << source << "\n" << made->bytes();
      EXPECT_TRUE(made.error().message.starts_with("template line ")) << made.error().message;
    }
    ++count;
  }
  EXPECT_GT(count, 200u);
}

// What a filter or an operator makes of each value by each form; null where Python has an error.
void check_forms(const DictObject& table, const char* forms, const char* results,
                 std::string_view source_form) {
  const std::span<const Value> values = table.find("values")->items();
  const std::span<const Value> specs = table.find(forms)->items();
  ASSERT_GT(values.size() * specs.size(), 500u);
  for (size_t row = 0; row < values.size(); ++row) {
    const Value& expected_row = table.find(results)->items()[row];
    for (size_t column = 0; column < specs.size(); ++column) {
      std::string source(source_form);
      source.replace(source.find("SPEC"), 4, specs[column].text());
      source.replace(source.find("VALUE"), 5, values[row].text());
      const Value& expected = expected_row.items()[column];
      auto made = run(source);
      if (expected.is(Kind::none)) {
        EXPECT_FALSE(made) << source << " gives " << made->bytes();
      } else {
        EXPECT_EQ(made ? made->bytes() : made.error().message, expected.text()) << source;
      }
    }
  }
}

// tests/jinja/cases/format.json: by Jinja2 3.1.6 on CPython 3.11.
TEST(Jinja, FormsOfNumbersAndTextsArePythons) {
  std::ifstream file(CAIRN_SOURCE "/tests/jinja/cases/format.json");
  std::stringstream json;
  json << file.rdbuf();
  auto parsed = parse_json(json.str());
  ASSERT_TRUE(parsed) << parsed.error().message;
  const DictObject& table = (*parsed).as<DictObject>();
  check_forms(table, "specs", "format", "{% set big = 1e308 %}{{ '{:SPEC}'.format(VALUE) }}");
  check_forms(table, "directives", "percent", "{% set big = 1e308 %}{{ 'SPEC' % (VALUE,) }}");
}

TEST(Jinja, ErrorsNameThePlaceAndBothSides) {
  EXPECT_EQ(text_of_run("{{ 1 }}\n{{ missing.x }}"),
            "error: template line 2, column 11: 'missing' is undefined");
  EXPECT_EQ(text_of_run("{{ 'a' + 1 }}"),
            "error: template line 1, column 8: '+': expected operands that fit, found str and int");
  EXPECT_EQ(text_of_run("{{ 1 | nope }}"),
            "error: template line 1, column 8: expected a known filter, found 'nope'");
  EXPECT_EQ(text_of_run("{{ (1 }}"), "error: template line 1, column 7: expected ')', found '}'");
  EXPECT_EQ(text_of_run("{% include 'x' %}"),
            "error: template line 1, column 4: expected a tag of chat templates, found 'include', "
            "which they may not use");
  EXPECT_EQ(text_of_run("{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}"),
            "error: template line 1, column 35: macro 'm': expected at most 1 arguments, found 2");
}

TEST(Jinja, IntegersOf64BitsOrAnError) {
  EXPECT_EQ(text_of_run("{{ 9223372036854775807 }}"), "9223372036854775807");
  EXPECT_EQ(text_of_run("{{ -9223372036854775807 - 1 }}"), "-9223372036854775808");
  for (const char* source :
       {"{{ 9223372036854775807 + 1 }}", "{{ 9223372036854775808 }}",
        "{{ 3037000500 * 3037000500 }}", "{{ 2 ** 63 }}", "{{ -(-9223372036854775807 - 1) }}",
        "{{ (-9223372036854775807 - 1) // -1 }}", "{{ '9e99'|int }}",
        "{{ '99999999999999999999'|int }}"}) {
    EXPECT_FALSE(run(source)) << source;
  }
  EXPECT_EQ(text_of_run("{{ (-9223372036854775807 - 1) % -1 }}"), "0");
}

TEST(Jinja, RealsPrintAsPythonPrintsThem) {
  EXPECT_EQ(real_repr(0.1), "0.1");
  EXPECT_EQ(real_repr(1e16), "1e+16");
  EXPECT_EQ(real_repr(123456789012345680.0), "1.2345678901234568e+17");
  EXPECT_EQ(real_repr(9999999999999998.0), "9999999999999998.0");
  EXPECT_EQ(real_repr(0.0001), "0.0001");
  EXPECT_EQ(real_repr(0.00001), "1e-05");
  EXPECT_EQ(real_repr(5e-324), "5e-324");
  EXPECT_EQ(real_repr(-0.0), "-0.0");
  EXPECT_EQ(real_repr(-HUGE_VAL), "-inf");
}

TEST(Jinja, CyclesAreFreed) {
  // The sanitizer build sees what would leak.
  EXPECT_EQ(text_of_run("{% set n = namespace() %}{% set n.me = n %}{% set n.l = [n, {'k': n}] %}"
                        "{% macro m() %}{{ m is defined }}{% endmacro %}{% set n.m = m %}"
                        "{% for x in [1] %}{% set n.loop = loop %}{{ loop.changed(loop) }}"
                        "{% endfor %}{{ n.m() }}"),
            "TrueTrue");
}

TEST(Jinja, LongChainsOfNamespacesAreFreedWithoutRecursion) {
  EXPECT_EQ(text_of_run("{% set n = namespace(p=0) %}{% for i in range(100000) %}"
                        "{% set n.p = namespace(p=n.p) %}{% endfor %}done"),
            "done");
}

TEST(Jinja, RecursionStaysInsideTheStack) {
  // The deepest mixture that the budgets allow: calls inside nested expressions.
  std::string body = "m(n)";
  for (int i = 0; i < 60; ++i) body = fmt::format("({} ~ 1)", body);
  const std::string source = "{% macro m(n) %}{{ " + body + " }}{% endmacro %}{{ m(1) }}";
  auto made = run(source);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::no_room);
}

TEST(Jinja, AnErrorEndsARenderAtAnyPoint) {
  for (const char* source :
       {"{% for x in [1] %}{% set y %}{{ nothing.x }}{% endset %}{% endfor %}",
        "{% macro m() %}{{ nothing.x }}{% endmacro %}{% call m() %}{{ 1 }}{% endcall %}",
        "{% filter upper %}{% for i in range(3) recursive %}{{ loop(1) }}{% endfor %}{% endfilter "
        "%}",
        "{% with n = namespace() %}{% set n.n = n %}{{ nothing.x }}{% endwith %}"}) {
    EXPECT_FALSE(run(source)) << source;
  }
}

TEST(Jinja, MarksFollowEveryCharacter) {
  const std::vector<Variable> variables = {{"u", plain_string("USER", false)},
                                           {"n", Value::integer(7).set_users(true)}};
  auto made =
      run("a{{ u }}b{{ 'x' ~ u[1:3] ~ 'y' }}{{ 5 }}{{ n }}{{ n + 1 }}{{ u|length }}", variables);
  ASSERT_TRUE(made);
  std::string shown;
  for (const OriginSpan& span : made->spans()) {
    const std::string part(made->bytes().substr(span.begin, span.end - span.begin));
    shown += span.trusted ? part : fmt::format("<{}>", part);
  }
  EXPECT_EQ(shown, "a<USER>bx<SE>y5<78>4");
}

TEST(Jinja, OneTreeRendersOnManyThreads) {
  auto tree = parse("{% for i in range(50) %}{{ u|upper }}{{ 'c' ~ i }}{% endfor %}");
  ASSERT_TRUE(tree);
  const std::vector<Variable> variables = {{"u", plain_string("u", false)}};
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&text, &tree, &variables] {
      for (int i = 0; i < 50; ++i) {
        auto made = render(**tree, variables, std::nullopt);
        text = made ? std::string(made->bytes()) : "error";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
  EXPECT_TRUE(texts[0].starts_with("Uc0Uc1U"));
}

TEST(Jinja, DictsOfManyKeysFindThemAll) {
  std::vector<Entry> entries;
  for (int i = 0; i < 1000; ++i) {
    entries.emplace_back(Value::integer((i * 7919) % 1000), Value::integer(i));
    entries.emplace_back(plain_string(fmt::format("k{}", i % 500), true), Value::integer(i));
  }
  auto made = plain_dict(std::move(entries));
  ASSERT_TRUE(made);
  const DictObject& dict = (*made).as<DictObject>();
  EXPECT_EQ(dict.entries.size(), 1500u);
  EXPECT_EQ(dict.find("k7")->as_integer(), 507);
  EXPECT_EQ(dict.find(Value::real(919.0))->as_integer(), 1);
  EXPECT_EQ(dict.find("k500"), nullptr);
  EXPECT_EQ(dict.find(Value::none()), nullptr);
}

}  // namespace
}  // namespace cairn::jinja::jinja_test
