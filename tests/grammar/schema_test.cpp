// JSON schemas: keyword by keyword, what fits and what does not. That everything that fits also
// validates is checked against another implementation in against_jsonschema.py.
#include "grammar/schema.h"

#include "tests/grammar/toy_vocabulary.h"

namespace cairn::grammar::schema_test {
namespace {

void expect_schema(const char* schema, const std::vector<std::string>& good,
                   const std::vector<std::string>& bad) {
  SCOPED_TRACE(schema);
  expect_fits(compile_schema(schema), good, bad);
}

TEST(Schema, PlainTypes) {
  expect_schema(R"({"type":"null"})", {"null"}, {"true", ""});
  expect_schema(R"({"type":"boolean"})", {"true", "false"}, {"null", "1"});
  expect_schema(R"({"type":["integer","null"]})", {"0", "-12", "null"}, {"01", "-", "1.5", "+1"});
  expect_schema(R"({"type":"number"})", {"0", "-1.25", "1e5", "2.5E-07"},
                {"1.", ".5", "1e", "1e500"});
  expect_schema(R"({"type":"string"})",
                {R"("")", R"("é\n\u0041\/")", R"("\uD83D\uDE00")", "\"\x7f\""},
                {R"(")", R"("\uD83D")", R"("\uDE00")", "\"\n\"", R"("\x")"});
}

TEST(Schema, AnyValue) {
  for (const char* schema : {"true", "{}", R"({"title":"x","$comment":"y","unknown":3})"}) {
    expect_schema(schema, {"1", R"({"a":[{},[],{"b":null}],"c":""})", "[1,\"x\", 2]"},
                  {"{a:1}", "[1,]", "[1 2]", "{\"a\"}"});
  }
}

TEST(Schema, BlanksAreBounded) {
  expect_schema(R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]})",
                {R"({"a":1})", R"({ "a": 1 })", "{\n\t\t\"a\": 1\n}",
                 "{\n" + std::string(20, ' ') + "\"a\":1}"},
                {R"({"a" :1})", "{\n\n\"a\":1}", "{\"a\":\n1}", "{\n\t \"a\":1}", R"({  "a":1})",
                 " {\"a\":1}", "{\"a\":1} ", "{\n" + std::string(21, ' ') + "\"a\":1}"});
}

TEST(Schema, PropertiesKeepTheirOrderAndMayBeMissing) {
  expect_schema(
      R"({"properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"},
          "d":{"type":"null"}},"required":["c"]})",
      {R"({"c":null})", R"({"a":null,"c":null})", R"({"b":null,"c":null,"d":null})",
       R"({"a":null,"b":null,"c":null,"d":null})"},
      {"{}", R"({"a":null})", R"({"c":null,"a":null})", R"({"a":null "c":null})",
       R"({"c":null,"e":null})", R"({,"c":null})", R"({"c":null,})"});
  expect_schema(R"({"properties":{"a":{"type":"null"},"b":{"type":"null"}}})",
                {"{}", "{ }", R"({"a":null})", R"({"b":null})", R"({"a":null,"b":null})"},
                {R"({"b":null,"a":null})", R"({"a":null,"a":null})"});
}

TEST(Schema, AdditionalProperties) {
  expect_schema(
      R"({"properties":{"ab":{"type":"null"}},"additionalProperties":{"type":"integer"}})",
      {"{}", R"({"ab":null,"a":1,"abc":2})", R"({"x":1})", R"({"":5})"},
      {R"({"ab":1})", R"({"ab":null,"ab":1})", R"({"x":null})", R"({"a\u0062":1})"});
  expect_schema(R"({"type":"object","additionalProperties":{"type":"null"}})",
                {"{}", R"({"\u0041":null,"b":null})"}, {R"({"a":1})"});
  expect_schema(R"({"type":"object","additionalProperties":false})", {"{}"}, {R"({"a":1})"});
  expect_schema(R"({"type":"object","required":["k"]})", {R"({"k":[1]})"}, {"{}", R"({"j":1})"});
  expect_schema(R"({"type":"object","minProperties":1})", {R"({"k":1})"}, {"{}"});
  expect_schema(R"({"type":"object","maxProperties":1})", {"{}", R"({"k":1})"},
                {R"({"k":1,"l":1})"});
}

TEST(Schema, Arrays) {
  expect_schema(R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3})",
                {"[1,2]", "[1, 2,3]"}, {"[1]", "[]", "[1,2,3,4]", "[1,\"a\"]"});
  expect_schema(R"({"prefixItems":[{"type":"integer"},{"type":"null"}],"items":{"type":"string"}})",
                {"[1,null]", R"([1,null,"a","b"])"}, {"[]", "[1]", "[1,null,2]"});
  expect_schema(R"({"items":[{"type":"integer"}],"additionalItems":false})", {"[1]"}, {"[1,2]"});
  expect_schema(R"({"prefixItems":[{"type":"integer"},{"type":"null"}],"maxItems":1})", {"[1]"},
                {"[1,null]"});
  expect_schema(R"({"prefixItems":[{"type":"integer"}],"minItems":2})", {"[1,{}]"}, {"[1]"});
  expect_schema(R"({"type":"array","items":{"type":"null"},"maxItems":0})", {"[]"}, {"[null]"});
}

TEST(Schema, ValuesByName) {
  expect_schema(R"({"enum":["a\"b",1,null,{"x":[1, 2]}]})",
                {R"("a\"b")", "1", "null", R"({"x":[1,2]})"}, {"a", "2"});
  expect_schema(R"({"const":"x"})", {R"("x")"}, {R"("y")"});
  expect_schema(R"({"type":"string","enum":["a",1]})", {R"("a")"}, {"1"});
  expect_schema(R"({"allOf":[{"enum":[1,2]},{"enum":[2,3]}]})", {"2"}, {"1", "3"});
}

TEST(Schema, ChoicesAndConjunctions) {
  expect_schema(R"({"anyOf":[{"type":"null"},{"type":"integer"}]})", {"null", "5"}, {"\"a\""});
  expect_schema(
      R"({"type":"object","properties":{"kind":{"enum":["a","b"]},"x":{"type":"integer"}},
          "required":["kind"],"oneOf":[{"properties":{"kind":{"const":"a"}},"required":["x"]},
          {"properties":{"kind":{"const":"b"}}}]})",
      {R"({"kind":"a","x":1})", R"({"kind":"b"})", R"({"kind":"b","x":1})"},
      {R"({"kind":"a"})", R"({"kind":"c"})"});
  expect_schema(
      R"({"allOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},
                   {"properties":{"a":{"minimum":5},"b":{"type":"null"}}}]})",
      {R"({"a":5})", R"({"a":7,"b":null})"}, {R"({"a":4})", R"({"b":null})"});
  // What one part forbids, no other allows.
  expect_schema(
      R"({"allOf":[{"properties":{"a":{"type":"null"},"b":{"type":"null"}}},
                   {"properties":{"a":{"type":"null"}},"additionalProperties":false}]})",
      {"{}", R"({"a":null})"}, {R"({"b":null})"});
}

TEST(Schema, References) {
  expect_schema(
      R"({"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{
          "value":{"type":"integer"},"left":{"$ref":"#/$defs/tree"},
          "right":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]}},"required":["value"]}}})",
      {R"({"value":1})", R"({"value":1,"left":{"value":2,"right":null},"right":{"value":3}})"},
      {R"({"left":{"value":1}})", R"({"value":1,"left":null})"});
  expect_schema(R"({"type":"array","items":{"$ref":"#"}})", {"[]", "[[],[[]]]"}, {"[1]"});
  expect_schema(R"({"$defs":{"a~b/c":{"type":"null"}},"$ref":"#/%24defs/a~0b~1c"})", {"null"},
                {"1"});
  expect_schema(R"({"prefixItems":[{"type":"integer"},{"$ref":"#/prefixItems/0"}]})", {"[1,2]"},
                {"[1,null]"});
  expect_schema(R"({"$ref":"#/$defs/n","maximum":3,"$defs":{"n":{"type":"integer","minimum":2}}})",
                {"2", "3"}, {"1", "4"});
}

TEST(Schema, Strings) {
  expect_schema(R"({"type":"string","minLength":2,"maxLength":4})",
                {R"("ab")", R"("é😀")", R"("\n\uD83D\uDE00ab")"}, {R"("a")", R"("abcde")"});
  expect_schema(R"({"type":"string","minLength":200})", {"\"" + std::string(200, 'x') + "\""},
                {"\"" + std::string(199, 'x') + "\""});
  expect_schema(R"({"pattern":"^[a-c\"]+$"})", {R"("abc")", R"("a\"")"}, {R"("abd")", R"("")"});
  expect_schema(R"({"pattern":"ab|^c"})", {R"("xxabyy")", R"("cx")", R"("\nab")"},
                {R"("xc")", R"("a")"});
  expect_schema(R"({"pattern":"^\\S+@\\S+$"})", {R"("a@b")"}, {R"("a b@c")"});
}

TEST(Schema, PatternsWithinALength) {
  const auto text = [](const std::string& content) { return "\"" + content + "\""; };
  expect_schema(R"({"pattern":"^[a-z]+$","maxLength":3})", {text("a"), text("abc")},
                {text(""), text("abcd"), text("a1")});
  expect_schema(R"({"pattern":"^[A-Z][a-z]*$","minLength":3,"maxLength":4})",
                {text("Abc"), text("Abcd")}, {text("Ab"), text("Abcde"), text("abc")});
  // Several parts of several lengths share what is wanted.
  expect_schema(R"({"pattern":"^(foo|ba)+\\d*$","minLength":4,"maxLength":6})",
                {text("baba"), text("fooba"), text("foofoo"), text("ba12"), text("foo123")},
                {text("foo"), text("ba1"), text("bababa1"), text("foob"), text("babab")});
  expect_schema(R"({"pattern":"ab","minLength":4})",
                {text("xxab"), text("abxxxxxxxx"), text("xab\\n")},
                {text("ab"), text("xab"), text("xxxx")});
  expect_schema(R"({"format":"date","minLength":5})", {text("2024-02-29")}, {text("2024")});
  expect_schema(R"({"format":"ipv4","maxLength":8})", {text("1.2.3.4"), text("12.3.4.5")},
                {text("127.0.0.1")});
  EXPECT_FALSE(compile_schema(R"({"type":"string","pattern":"^abc$","minLength":4})"));
}

// Against counting: every text of two letters up to some length.
TEST(Schema, PatternsWithinALengthAreExact) {
  for (const char* pattern : {"^(a|bb)*$", "^a*b+a?$", "^(ab|b){1,3}a*$", "a(b|aa)*b"}) {
    const auto all = matcher_of(compile_schema(fmt::format(R"({{"pattern":"{}"}})", pattern)));
    const auto some = matcher_of(
        compile_schema(fmt::format(R"({{"pattern":"{}","minLength":3,"maxLength":6}})", pattern)));
    for (size_t length = 0; length <= 8; ++length) {
      for (uint32_t bits = 0; bits < 1u << length; ++bits) {
        std::string text = "\"";
        for (size_t i = 0; i < length; ++i) text += (bits >> i & 1) != 0 ? 'b' : 'a';
        text += '"';
        const bool is_wanted = fit(*all, text) == Fit::whole && length >= 3 && length <= 6;
        ASSERT_EQ(fit(*some, text) == Fit::whole, is_wanted) << pattern << " " << text;
      }
    }
  }
}

TEST(Schema, Formats) {
  const auto text = [](const char* content) { return "\"" + std::string(content) + "\""; };
  expect_schema(R"({"format":"date"})", {text("2024-02-29"), text("2023-12-31")},
                {text("2023-02-29"), text("2023-04-31"), text("0000-01-01"), text("2023-1-1")});
  expect_schema(R"({"format":"date-time"})",
                {text("2024-02-29T23:59:59Z"), text("2024-01-01T00:00:00.5+01:30")},
                {text("2024-02-29"), text("2024-02-29T24:00:00Z")});
  expect_schema(R"({"format":"uuid"})", {text("123e4567-e89b-12d3-a456-426614174000")},
                {text("1")});
  expect_schema(R"({"format":"ipv4"})", {text("255.0.10.199")},
                {text("256.0.0.1"), text("01.1.1.1")});
  expect_schema(R"({"format":"ipv6"})",
                {text("::"), text("::1"), text("1:2:3:4:5:6:7:8"), text("fe80::1:2")},
                {text("1::2::3"), text("1:2:3")});
  expect_schema(R"({"format":"email"})", {text("a.b@example.org")}, {text("a@b"), text("a@.b.c")});
  expect_schema(R"({"format":"duration"})", {text("P1Y2M3DT4H5M6S"), text("PT5S"), text("P3W")},
                {text("P"), text("P1YT"), text("P1H")});
  expect_schema(R"({"format":"hostname"})", {text("a-b.example")}, {text("-a"), text("a..b")});
  expect_schema(R"({"format":"uri"})", {text("https://example.org:80/a/b?c=%20d")}, {text("x")});
  expect_schema(R"({"type":"string","format":"something else"})", {text("any")}, {"1"});
}

TEST(Schema, IntegersBetweenBoundsAreExact) {
  for (const auto& [low, high] : {std::pair(-120, 45), {7, 7}, {-30, -9}, {0, 1000}, {99, 101}}) {
    const auto matcher = matcher_of(compile_schema(
        fmt::format(R"({{"type":"integer","minimum":{},"maximum":{}}})", low, high)));
    for (int value = -1100; value <= 1100; ++value) {
      const bool is_inside = low <= value && value <= high;
      ASSERT_EQ(fit(*matcher, std::to_string(value)) == Fit::whole, is_inside)
          << value << " in " << low << ".." << high;
    }
    EXPECT_EQ(fit(*matcher, "-0"), Fit::no);
  }
  expect_schema(R"({"type":"integer","exclusiveMinimum":2.5,"exclusiveMaximum":5})", {"3", "4"},
                {"2", "5"});
  expect_schema(R"({"type":"integer","minimum":12})", {"12", "99", "1234567890123456"},
                {"11", "2", "-20"});
  expect_schema(R"({"type":"integer","maximum":-12})", {"-12", "-100"}, {"-11", "5", "0"});
  expect_schema(
      R"({"type":"integer","minimum":0,"exclusiveMinimum":true,"maximum":12345678901234567890123})",
      {"1", "12345678901234567890123"}, {"0", "12345678901234567890124"});
  expect_schema(R"({"type":"integer","minimum":1e2,"maximum":1.5e2})", {"100", "150"},
                {"99", "151"});
  expect_schema(R"({"type":"integer","multipleOf":7,"minimum":-20,"maximum":20})",
                {"-14", "0", "14"}, {"1", "-21", "21"});
  expect_schema(R"({"type":"integer","multipleOf":12})", {"0", "12", "-144", "1200"},
                {"6", "14", "00"});
}

TEST(Schema, MultiplesOfFractions) {
  expect_schema(R"({"type":"number","multipleOf":0.01})",
                {"0", "1", "-12.5", "0.07", "99999.99", "10.10"},
                {"0.001", "1.", "00", "-0", "1e2"});
  expect_schema(R"({"type":"number","multipleOf":0.25,"minimum":-1,"maximum":0.8})",
                {"-1", "-0.75", "0", "0.5", "0.75"}, {"-1.25", "0.8", "1", "0.3"});
  expect_schema(R"({"type":"number","multipleOf":2.5})", {"2.5", "-5", "5.0", "12.5", "0"},
                {"1", "2", "0.5", "2.50", "6.5"});
  expect_schema(R"({"type":"integer","multipleOf":1.5})", {"3", "0", "-6", "12"}, {"1.5", "4"});
  expect_schema(R"({"type":"integer","multipleOf":1.5,"minimum":1,"maximum":7})", {"3", "6"},
                {"1.5", "4.5", "0"});
}

// Every hundredth up to 20, in thousandths: what fits is a multiple, and each multiple fits.
TEST(Schema, MultiplesOfFractionsAreExact) {
  for (const int step : {125, 300, 7, 1500}) {
    const auto matcher =
        matcher_of(compile_schema(fmt::format(R"({{"type":"number","multipleOf":{}e-3}})", step)));
    for (int thousandths = -2000; thousandths <= 20'000; ++thousandths) {
      if (thousandths == 0) continue;
      std::string text =
          fmt::format("{}.{:03}", std::abs(thousandths) / 1000, std::abs(thousandths) % 1000);
      while (text.back() == '0') text.pop_back();
      if (text.back() == '.') text.pop_back();
      if (thousandths < 0) text.insert(0, "-");
      ASSERT_EQ(fit(*matcher, text) == Fit::whole, thousandths % step == 0) << text;
    }
  }
}

TEST(Schema, NamesByPattern) {
  expect_schema(
      R"({"type":"object","patternProperties":{"^x-[a-z]+$":{"type":"integer"}},
          "additionalProperties":false})",
      {"{}", R"({"x-a":1})", R"({"x-a":1,"x-bc":2})"},
      {R"({"y":1})", R"({"x-a":"1"})", R"({"x-":1})"});
  expect_schema(
      R"({"properties":{"id":{"type":"null"}},"patternProperties":{"^n":{"type":"integer"}},
                    "required":["id","name"]})",
      {R"({"id":null,"name":3})"}, {R"({"id":null})", R"({"id":null,"name":"x"})"});
  expect_schema(
      R"({"properties":{"n1":{"minimum":3}},"patternProperties":{"^n":{"type":"integer"}}})",
      {"{}", R"({"n1":3})"}, {R"({"n1":2})", R"({"n1":3.5})"});
  expect_schema(R"({"patternProperties":{"":{"type":"null"}}})", {R"({"anything":null})"},
                {R"({"a":1})"});
}

TEST(Schema, UniqueItems) {
  expect_schema(R"({"type":"array","items":{"enum":["a","b","c"]},"uniqueItems":true})",
                {"[]", R"(["a"])", R"(["a","c"])", R"(["a", "b","c"])"},
                {R"(["a","a"])", R"(["d"])", R"(["a",])"});
  expect_schema(R"({"items":{"enum":[1,2,3,4]},"uniqueItems":true,"minItems":2,"maxItems":3})",
                {"[1,2]", "[2,3,4]"}, {"[1]", "[1,2,3,4]", "[1,1]"});
  expect_schema(R"({"type":"array","items":{"type":"integer"},"uniqueItems":true,"maxItems":1})",
                {"[]", "[5]"}, {"[5,5]", "[1,2]"});
}

TEST(Schema, Exclusions) {
  expect_schema(R"({"not":{"type":["object","array"]}})", {"1", "null", "\"x\""}, {"{}", "[]"});
  expect_schema(R"({"type":"string","not":{"enum":["a","ab"]}})", {"\"\"", "\"abc\"", "\"b\""},
                {"\"a\"", "\"ab\"", "1"});
  expect_schema(R"({"enum":[1,2,3],"not":{"const":2}})", {"1", "3"}, {"2"});
  expect_schema(R"({"type":["boolean","null"],"not":{"enum":[null,true]}})", {"false"},
                {"true", "null"});
  expect_schema(R"({"type":"null","not":false})", {"null"}, {"1"});
  EXPECT_FALSE(compile_schema(R"({"not":{}})"));
}

TEST(Schema, NumbersBetweenBoundsAreExact) {
  const std::pair<double, double> ranges[] = {
      {-1.25, 3.5}, {0.5, 0.75}, {2, 2}, {-0.3, -0.1}, {9.99, 100}};
  for (const auto& [low, high] : ranges) {
    for (const bool excludes : {false, true}) {
      const char* name = excludes ? "exclusiveM" : "m";
      auto grammar = compile_schema(
          fmt::format(R"({{"type":"number","{}inimum":{},"{}aximum":{}}})", name, low, name, high));
      if (!grammar) {
        EXPECT_EQ(low, high);
        continue;
      }
      const auto matcher = matcher_of(std::move(grammar));
      for (int cents = -400; cents <= 11'000; ++cents) {
        if (cents == 0) continue;
        const double value = cents / 100.0;
        const bool is_inside =
            excludes ? low < value && value < high : low <= value && value <= high;
        ASSERT_EQ(fit(*matcher, fmt::format("{:.2f}", value)) == Fit::whole,
                  is_inside || (!excludes && (value == low || value == high)))
            << value << " in " << low << ".." << high;
      }
    }
  }
  expect_schema(R"({"type":"number","minimum":-1})", {"0", "0.5", "-0.5", "-1", "12345.678"},
                {"-1.1", "-2"});
  expect_schema(R"({"type":"number","exclusiveMaximum":0})", {"-0.1", "-55"}, {"0", "0.1", "0.0"});
}

TEST(Schema, ErrorsSayWhereAndWhy) {
  const std::pair<const char*, const char*> cases[] = {
      {"{\n \"type\":\n  \"strin\"}", "schema: line 3, column 3: expected the name of a type"},
      {"{\"a\":1,\n \"a\":2}", "line 2, column 2: the key \"a\" comes twice"},
      {"[1", "expected \",\" or \"]\", found the end"},
      {"3", "line 1, column 1: expected a schema: an object, true or false"},
      {R"({"properties":3})", "column 15: expected an object of schemas"},
      {R"({"anyOf":[]})", "expected a list of schemas, not empty"},
      {R"({"enum":3})", "expected a list of values"},
      {R"({"not":{"enum":3}})", "expected a list of values"},
      {R"({"required":[3]})", "column 14: expected a name"},
      {R"({"$ref":"#/a/b"})", "nothing in this schema is at \"#/a/b\""},
      {R"({"$ref":3})", "expected a reference in quotes"},
      {R"({"$ref":"#"})", "these references lead to each other"},
      {R"({"minLength":-1})", "expected a number of 0 or more"},
      {R"({"minimum":"1"})", "expected a number"},
      {R"({"pattern":"(a"})",
       "column 12: regex: line 1, column 1: this parenthesis is never closed"},
      {"false", "can never end"},
      {R"({"type":"string","minLength":3,"maxLength":2})", "can never end"},
      {R"({"allOf":[{"type":"string"},{"type":"null"}]})", "can never end"},
      {R"({"type":"integer","minimum":5,"maximum":4})", "can never end"},
      {R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})", "left recursion"},
      {"", "expected a JSON value, found the end"},
  };
  for (const auto& [schema, reason] : cases) {
    const auto grammar = compile_schema(schema);
    ASSERT_FALSE(grammar) << schema;
    EXPECT_EQ(grammar.error().code, ErrorCode::invalid_argument) << schema;
    EXPECT_NE(grammar.error().message.find(reason), std::string::npos) << grammar.error().message;
  }
}

TEST(Schema, WhatCannotBeFollowedSaysSo) {
  for (const char* schema :
       {R"({"not":{"required":["a"]}})", R"({"not":{"type":"integer"}})",
        R"({"type":"integer","not":{"const":3}})",
        R"({"type":"string","maxLength":3,"not":{"const":"a"}})",
        R"({"type":"array","uniqueItems":true})",
        R"({"items":{"enum":[1,1.0]},"uniqueItems":true})",
        R"({"patternProperties":{"a":{},"b":{}}})", R"({"if":true})",
        R"({"$ref":"https://example.org/x"})", R"({"$ref":"#name"})", R"({"enum":[1],"minimum":0})",
        R"({"pattern":"(a|bb)*","minLength":1000})", R"({"pattern":"^(a?b?){2,4}$","maxLength":3})",
        "{\"pattern\":\"(?=a)\"}", R"({"type":"number","multipleOf":0.01,"minimum":0})",
        R"({"type":"number","multipleOf":0.00723})",
        R"({"properties":{"a":{}},"minProperties":1})"}) {
    const auto grammar = compile_schema(schema);
    ASSERT_FALSE(grammar) << schema;
    EXPECT_EQ(grammar.error().code, ErrorCode::unsupported) << grammar.error().message;
  }
  EXPECT_TRUE(compile_schema(R"({"type":"array","uniqueItems":false})"));
}

}  // namespace
}  // namespace cairn::grammar::schema_test
