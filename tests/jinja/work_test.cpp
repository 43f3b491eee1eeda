// Work is paid for: whatever an operation costs more for a larger input, its steps grow with it,
// and what would not end ends at the budget. Counted in steps, not in seconds.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "jinja/interpreter.h"
#include "jinja/syntax/parser.h"
#include "jinja/work_budget.h"

namespace cairn::jinja::work_test {
namespace {

struct Spent {
  int64_t steps = 0;
  std::string error;  // Empty: none.
  std::optional<ErrorCode> code;
};

Spent run(std::string_view source, int64_t steps = kStepsMax) {
  auto tree = parse(source);
  if (!tree) return {.steps = 0, .error = tree.error().message, .code = tree.error().code};
  // Of two origins, so that marks are carried too.
  const std::vector<Variable> variables = {{"u", plain_string("b", false)}};
  WorkBudget budget(steps);
  auto text = render(**tree, variables, CivilTime{2026, 1, 2, 3, 4, 5}, budget);
  if (text) return {.steps = budget.used_steps(), .error = "", .code = std::nullopt};
  return {.steps = budget.used_steps(), .error = text.error().message, .code = text.error().code};
}

// The steps of one expression where `a` and `b` are different strings of the same `size` bytes, `l`
// is a list and `d` a dict of them, less those that making them takes.
int64_t steps_of(const std::string& expression, size_t size) {
  const std::string given = fmt::format(
      "{{% set a = 'x' * {0} %}}{{% set b = 'x' * {0} %}}{{% set l = [1] * {0} %}}"
      "{{% set p = range({1})|batch(1)|map('list')|list %}}"
      "{{% set d = {{a: 1}} %}}{{% set n = namespace(**{{'k' ~ 'x' * 900: 1}}) %}}",
      size, std::min<size_t>(size, 1000));
  const Spent before = run(given);
  const Spent after = run(given + "{% set r = " + expression + " %}");
  EXPECT_EQ(before.error, "");
  EXPECT_EQ(after.error, "") << expression;
  return after.steps - before.steps;
}

constexpr const char* kExpressions[] = {"{b: 1}",
                                        "{1: 1, a: 2}",
                                        "b in d",
                                        "d[b]",
                                        "d.get(b)",
                                        "d.get(b, 1)",
                                        "d == {b: 1}",
                                        "{(a, 1): 1}",
                                        "(b, 1) in {(a, 1): 1}",
                                        "[a, b]|unique|list",
                                        "a.startswith(b)",
                                        "a.endswith(b)",
                                        "a.startswith((b, b))",
                                        "a.removeprefix(b)",
                                        "a == b",
                                        "a < b",
                                        "a in b",
                                        "a ~ b",
                                        "a + b",
                                        "a[::2]",
                                        "a|upper",
                                        "a|title",
                                        "a.title()",
                                        "a|capitalize",
                                        "a.swapcase()",
                                        "a|trim('x')",
                                        "a.strip('xyz')",
                                        "''.strip(a)",
                                        "a.center(50000)",
                                        "'x'.center(2, '' ~ a[:1]) ~ a",
                                        "a.zfill(50000)",
                                        "'x'.ljust(50000)",
                                        "('\t' * 40).expandtabs(1000)",
                                        "a.split('y')",
                                        "a.split()",
                                        "a.splitlines()",
                                        "a.partition('y')",
                                        "a.replace('y', '')",
                                        "a.count('y')",
                                        "a.find('y')",
                                        "a.rfind('y')",
                                        "a.find('y', 1)",
                                        "a.isalpha()",
                                        "a|wordcount",
                                        "a|urlencode",
                                        "a|e",
                                        "a|int",
                                        "a|float",
                                        "a|tojson",
                                        "[a]|string",
                                        "a|indent",
                                        "1|truncate(40000, false, a) if false else a|length ~ a",
                                        "'y'|truncate(90000, false, a)",
                                        "'%s' % a",
                                        "'{}'.format(a)",
                                        "'{:.1}'.format(a) ~ a",
                                        "'%(' ~ a ~ ')s' % {a: 1}",
                                        "l + l",
                                        "l == l + []",
                                        "1 in l[1:] + [2]",
                                        "l|sort",
                                        "l|reverse",
                                        "l|join",
                                        "l|tojson",
                                        "l|string",
                                        "l|sum",
                                        "l|max",
                                        "l|batch(2)|list",
                                        "l|map('abs')|list",
                                        "l|select|list",
                                        "l.count(1)",
                                        "l.index(2) if false else l.count(2)",
                                        "l|unique|list",
                                        "dict(p|map('first')|list|batch(2))|items|list",
                                        "strftime_now('%c' * 400)",
                                        "[d]|map(attribute=a)|list",
                                        "{a: 1, b: 2}|dictsort",
                                        "{a: 1, 1: 2}|length",
                                        "{a: 1, a ~ 'y': 2}|tojson(sort_keys=true)",
                                        "{a: 1}|string"};

TEST(Work, GrowsWithWhatAnOperationReads) {
  constexpr size_t kSize = 40'000;
  for (const char* expression : kExpressions) {
    EXPECT_GE(steps_of(expression, kSize), int64_t(kSize / kStepBytes)) << expression;
  }
}

TEST(Work, GrowsWithTheNamesInAScopeAndInANamespace) {
  const auto many = [](int count, std::string_view each) {
    std::string source;
    for (int i = 0; i < count; ++i) source += fmt::format("{{% set {}{} = 1 %}}", each, i);
    return source;
  };
  // A loop over the last one of ten times as many.
  for (const std::string_view each : {"v", "n.v"}) {
    const auto steps = [&](int count) {
      const std::string given = "{% set n = namespace() %}" + many(count, each);
      const std::string use =
          fmt::format("{{% for i in range(100) %}}{{{{ {}{} }}}}{{% endfor %}}", each, count - 1);
      return run(given + use).steps - run(given).steps;
    };
    EXPECT_GT(steps(10'000), 3 * steps(1'000)) << each;
  }
}

TEST(Work, WhatWouldNotEndIsOverTheBudget) {
  const std::string forever = "{% for i in range(100000) %}{% for j in range(100000) %}";
  const std::string end = "{% endfor %}{% endfor %}";
  // A tuple of the same tuple twice, and so on: 2^60 elements in the memory of sixty.
  const std::string tuples =
      "{% set n = namespace(x=(1, 1)) %}{% for i in range(60) %}{% set n.x = (n.x, n.x) %}"
      "{% endfor %}";
  for (const std::string& source : std::vector<std::string>{
           tuples + "{{ n.x in {n.x: 1} }}", tuples + "{{ {n.x: 1} }}",
           tuples + "{{ {n.x: 1}[n.x] }}", tuples + "{{ {n.x: 1, (n.x, 1): 2}.get(n.x) }}",
           tuples + "{{ [n.x, n.x]|unique|list }}", tuples + "{{ n.x == n.x }}",
           tuples + "{{ n.x < n.x }}", tuples + "{{ n.x|string }}",
           tuples + "{{ [(n.x, 1), (n.x, 2)]|sort }}",
           "{% set a = 'x' * 8000000 %}" + forever + "{{ {a: 1}[a] }}" + end,
           "{% set f = '{0:.1}' * 100000 %}{% set a = 'x' * 8000000 %}{{ f.format(a) }}" + forever +
               end,
           "{{ 'a'|map(*(['map'] * 100000))|list }}"}) {
    const Spent spent = run(source);
    EXPECT_EQ(spent.code, ErrorCode::no_room) << source.substr(0, 200) << "\n" << spent.error;
  }
  // Nothing has to be compared with a dict that has no keys.
  EXPECT_EQ(run(tuples + "{{ n.x in {} }}").error, "");
}

// The decimal digits of large and of small numbers take the C library long.
TEST(Work, DigitsArePaidFor) {
  const std::string given = "{% set big = 1.79e308 %}{% set small = 5e-324 %}";
  for (const std::string expression :
       {"big|round(0)", "1.5|round(300)", "'%.0f'|format(big)", "'%.300f' % 1.5",
        "'%.300e' % small", "'{:.0f}'.format(big)", "'{:.300}'.format(1.5)",
        "(big / 1e20)|filesizeformat", "(-big)|filesizeformat"}) {
    const Spent spent = run(given + "{% set r = " + expression + " %}");
    EXPECT_EQ(spent.error, "") << expression;
    EXPECT_GE(spent.steps - run(given).steps, 100) << expression;
  }
  EXPECT_LT(run("{{ 2.5|round(2) }}").steps, 20);
}

TEST(Work, NestedFiltersAreBounded) {
  EXPECT_EQ(run("{{ [['b']]|map('map', 'upper')|map('list')|list }}").error, "");
  const Spent spent = run("{{ 'a'|map(*(['map'] * 2000))|list }}");
  EXPECT_NE(spent.error.find("filters in filters: expected at most 64, found more"),
            std::string::npos)
      << spent.error;
}

TEST(Work, RendersShareABudget) {
  auto tree = parse("{% for i in range(1000) %}{% endfor %}");
  ASSERT_TRUE(tree);
  WorkBudget budget(2'500);
  EXPECT_TRUE(render(**tree, {}, std::nullopt, budget));
  EXPECT_TRUE(render(**tree, {}, std::nullopt, budget));
  EXPECT_FALSE(budget.is_spent());
  auto third = render(**tree, {}, std::nullopt, budget);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::no_room);
  EXPECT_TRUE(budget.is_spent());
}

}  // namespace
}  // namespace cairn::jinja::work_test
