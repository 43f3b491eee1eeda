// Hostile JSON: what is refused, where and why; every limit; and that another reader, nlohmann's,
// takes the same texts.
#include "json/reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

namespace cairn::json::reader_test {
namespace {

// The events as one text, or the error.
std::string told(std::string_view text, const Limits& limits = {}) {
  Reader reader("JSON", text, limits);
  std::string events;
  while (true) {
    auto event = reader.next();
    if (!event) return event.error().message;
    switch (*event) {
      case Event::null:
        events += "null ";
        break;
      case Event::boolean:
        events += reader.boolean() ? "true " : "false ";
        break;
      case Event::number:
        events += std::string(reader.spelling()) + " ";
        break;
      case Event::string:
        events += "\"" + reader.text() + "\" ";
        break;
      case Event::key:
        events += reader.text() + ": ";
        break;
      case Event::begin_object:
        events += "{ ";
        break;
      case Event::end_object:
        events += "} ";
        break;
      case Event::begin_array:
        events += "[ ";
        break;
      case Event::end_array:
        events += "] ";
        break;
      case Event::end:
        return events;
    }
  }
}

ErrorCode code_of(std::string_view text, const Limits& limits = {}) {
  Reader reader("JSON", text, limits);
  while (true) {
    auto event = reader.next();
    if (!event) return event.error().code;
    CHECK(*event != Event::end);
  }
}

TEST(JsonReader, HandsOutEventsInTheirOrder) {
  EXPECT_EQ(told(" {\"a\" : [1,-2.50,1E+2, true,false ,null] ,\"\":{}, \"b\":[ ]}\n"),
            "{ a: [ 1 -2.50 1E+2 true false null ] : { } b: [ ] } ");
  for (const char* text : {"1", "-0", "\"\"", "null", "[]", "{}"}) {
    EXPECT_TRUE(is_json(text, {})) << text;
  }
  Reader reader("JSON", "[ 12 , \"a\\n\" ]", {});
  ASSERT_TRUE(reader.next());
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.offset(), 2u);
  EXPECT_EQ(reader.spelling(), "12");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.offset(), 7u);
  EXPECT_EQ(reader.spelling(), "\"a\\n\"");
  EXPECT_EQ(reader.text(), "a\n");
}

TEST(JsonReader, UndoesEscapes) {
  EXPECT_EQ(told(R"("\"\\\/\b\f\n\r\t")"), "\"\"\\/\b\f\n\r\t\" ");
  EXPECT_EQ(told(R"("\u0041\u00e9\u20AC\ud83D\uDe00")"), "\"Aé€😀\" ");
  EXPECT_EQ(told(R"("\u0000")"), std::string("\"\0\" ", 4));
  EXPECT_EQ(told("\"\x7f é😀\""), "\"\x7f é😀\" ");
}

TEST(JsonReader, ErrorsSayWhereAndBothValues) {
  const std::pair<std::string_view, const char*> cases[] = {
      {"", "line 1, column 1: expected a JSON value, found the end"},
      {"{\n  \"a\": nope\n}", "line 2, column 8: expected a JSON value, found \"n\""},
      {"[1,]", "line 1, column 4: expected a JSON value, found \"]\""},
      {"[1 2]", "line 1, column 4: expected \",\" or \"]\", found \"2\""},
      {"{\"a\":1 \"b\":2}", "line 1, column 8: expected \",\" or \"}\", found \"\"\""},
      {"{\"a\":1,}", "line 1, column 8: expected a key in quotes, found \"}\""},
      {"{1:2}", "line 1, column 2: expected a key in quotes, found \"1\""},
      {"{\"a\" 1}", "line 1, column 6: expected \":\", found \"1\""},
      {"[1] 2", "line 1, column 5: expected the end, found \"2\""},
      {"01", "line 1, column 2: expected the end, found \"1\""},
      {"-", "line 1, column 2: expected a digit, found the end"},
      {"1.", "line 1, column 3: expected a digit, found the end"},
      {"1e+", "line 1, column 4: expected a digit, found the end"},
      {"\"ab", "line 1, column 4: expected a character of a string or its end, found the end"},
      {"\"a\nb\"", "line 1, column 3: expected a character of a string or its end, found \"\\n\""},
      {"\"\\x\"", "line 1, column 3: expected an escape, found \"x\""},
      {"\"\\u12g4\"", "line 1, column 3: expected four hexadecimal digits, found \"u\""},
      {"\"\\ud800\"", "line 1, column 8: expected a whole surrogate pair, found \"\"\""},
      {"\"\\ud800\\u0041\"", "line 1, column 8: expected a whole surrogate pair, found \"\\\""},
      {"\"\\ude00\"", "line 1, column 8: expected a whole surrogate pair, found \"\"\""},
      {"\"\xff\"", "line 1, column 2: expected UTF-8, found \"\\xff\""},
      {"\"\xed\xa0\x80\"", "line 1, column 2: expected UTF-8, found \"\\xed\""},
      {"\"\xc0\x80\"", "line 1, column 2: expected UTF-8, found \"\\xc0\""},
      {"{\"a\":1,\n\"b\":2, \"a\":3}", "line 2, column 8: the key \"a\" comes twice"},
      {"\xef\xbb", "line 1, column 1: expected a JSON value, found \"\\xef\""},
      {"+1", "line 1, column 1: expected a JSON value, found \"+\""},
      {"NaN", "line 1, column 1: expected a JSON value, found \"N\""},
      {"// x\n1", "line 1, column 1: expected a JSON value, found \"/\""},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(told(text), std::string("JSON: ") + message) << text;
    EXPECT_EQ(code_of(text), ErrorCode::invalid_data) << text;
  }
  // A zero byte is neither a blank nor the end.
  for (const std::string_view text : {std::string_view("1\0", 2), std::string_view("\0", 1),
                                      std::string_view("[\0]", 3), std::string_view("\"\0\"", 3)}) {
    EXPECT_FALSE(is_json(text, {}));
  }
}

TEST(JsonReader, AByteOrderMarkMayStandInFront) {
  EXPECT_EQ(told("\xEF\xBB\xBF [1]"), "[ 1 ] ");
  EXPECT_FALSE(is_json("[\xEF\xBB\xBF]", {}));
  EXPECT_FALSE(is_json("\xEF\xBB\xBF\xEF\xBB\xBF[]", {}));
}

TEST(JsonReader, LimitsHoldToTheNumber) {
  const auto refused = [](std::string_view text, const Limits& limits) {
    EXPECT_EQ(code_of(text, limits), ErrorCode::no_room) << text;
    return told(text, limits);
  };
  EXPECT_TRUE(is_json("[1,2]", {.bytes = 5}));
  EXPECT_EQ(refused("[1,2]", {.bytes = 4}), "JSON: expected at most 4 bytes, found 5");
  EXPECT_TRUE(is_json("[{\"a\":[]}]", {.depth = 3}));
  EXPECT_EQ(refused("[{\"a\":[]}]", {.depth = 2}),
            "JSON: line 1, column 7: containers in each other: expected at most 2, found more");
  EXPECT_FALSE(is_json("[]", {.depth = 0}));
  EXPECT_TRUE(is_json("1", {.depth = 0}));
  EXPECT_TRUE(is_json("[1,2]", {.values = 3}));
  EXPECT_EQ(refused("[1,2]", {.values = 2}),
            "JSON: line 1, column 4: values: expected at most 2, found more");
  EXPECT_TRUE(is_json("{\"a\":{\"c\":1},\"b\":1}", {.members = 2}));
  EXPECT_EQ(refused("{\"a\":1,\"b\":1}", {.members = 1}),
            "JSON: line 1, column 8: members of an object: expected at most 1, found more");
  EXPECT_TRUE(is_json("[\"\\u0041bc\",\"abc\"]", {.string_bytes = 3}));
  EXPECT_EQ(refused("[\"abcd\"]", {.string_bytes = 3}),
            "JSON: line 1, column 2: bytes of a string: expected at most 3, found more");
  EXPECT_FALSE(is_json("{\"abcd\":1}", {.string_bytes = 3}));
}

TEST(JsonReader, DepthCostsNoStack) {
  for (const std::string_view open : {"[", "{\"a\":", "[[],{\"b\":"}) {
    std::string bomb;
    while (bomb.size() < 2'000'000) bomb += open;
    EXPECT_EQ(code_of(bomb), ErrorCode::no_room);
    Limits limits;
    limits.depth = limits.values = SIZE_MAX;
    EXPECT_EQ(code_of(bomb, limits), ErrorCode::invalid_data);
  }
  const std::string deep = std::string(64, '[') + std::string(64, ']');
  EXPECT_TRUE(is_json(deep, {}));
  EXPECT_FALSE(is_json("[" + deep + "]", {}));
}

TEST(JsonReader, KeysComeOnceInEachObject) {
  EXPECT_TRUE(is_json(R"({"a":{"a":{"a":1},"b":1},"b":{"a":1}})", {}));
  EXPECT_FALSE(is_json(R"({"a":{"b":1,"\u0062":2}})", {}));
  EXPECT_TRUE(is_json(R"({"a":1,"a":2})", {.may_repeat_keys = true}));
  // Behind an inner object, the outer one's keys are still known, few or many.
  EXPECT_FALSE(is_json(R"({"a":1,"b":{"a":1,"c":2},"a":3})", {}));
  for (const int count : {7, 8, 9, 500}) {
    std::string wide = "{";
    for (int i = count; i-- > 0;) wide += fmt::format("\"k{}\":{{\"x\":1,\"y\":2}},", i);
    EXPECT_TRUE(is_json(wide + "\"z\":0}", {})) << count;
    EXPECT_EQ(told(wide + "\"k3\":0,\"k4\":0}"),
              fmt::format("JSON: line 1, column {}: the key \"k3\" comes twice", wide.size() + 1));
  }
}

// Each would take minutes where time grew with the square of what is read.
TEST(JsonReader, TimeGrowsWithTheText) {
  constexpr int kMembers = 100'000;
  const Limits wide{.members = kMembers};
  std::string members = "{", alike = "{", escapes = "\"", numbers = "[";
  const std::string prefix(200, 'p');
  for (int i = 0; i < kMembers; ++i) {
    const char* const comma = i == 0 ? "" : ",";
    members += fmt::format("{}\"{}\":[{{}}]", comma, i);
    alike += fmt::format("{}\"{}{}\":0", comma, prefix, i);
    escapes += "\\ud83d\\ude00\\\"";
    numbers += fmt::format("{}1e-{}", comma, i);
  }
  EXPECT_TRUE(is_json(members + "}", wide));
  EXPECT_FALSE(is_json(members + ",\"5\":0}", {.members = kMembers + 1}));
  EXPECT_FALSE(is_json(members + ",\"x\":0}", wide));
  EXPECT_TRUE(is_json(alike + "}", wide));
  EXPECT_TRUE(is_json(escapes + "\"", {}));
  EXPECT_TRUE(is_json(numbers + "]", {}));
  EXPECT_TRUE(is_json("0." + std::string(1'000'000, '7'), {}));
  EXPECT_FALSE(is_json(std::string(1'000'000, '7'), {}));
  EXPECT_FALSE(is_json("\"" + std::string(1'000'000, ' '), {}));
  EXPECT_TRUE(is_json(std::string(1'000'000, ' ') + "1" + std::string(1'000'000, '\n'), {}));
}

TEST(JsonReader, NumbersAreExact) {
  EXPECT_EQ(integer_of("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(integer_of("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(integer_of("9007199254740993"), 9007199254740993);
  EXPECT_EQ(integer_of("-0"), 0);
  for (const char* text : {"9223372036854775808", "-9223372036854775809", "1.0", "1e2"}) {
    EXPECT_FALSE(integer_of(text)) << text;
  }
  EXPECT_EQ(real_of("1000000000000000019884624838656"), 1e30);
  EXPECT_EQ(real_of("4.9e-324"), 4.9e-324);
  EXPECT_EQ(real_of("2.2250738585072011e-308"), 2.2250738585072011e-308);
  EXPECT_TRUE(std::signbit(real_of("-0.0")));
  for (const char* text : {"1e-400", "0e999999999999999999999", "-1e-99999999999999999999999",
                           "0.0000001e-400", "0.000e400"}) {
    EXPECT_EQ(real_of(text), 0) << text;
  }
  EXPECT_EQ(real_of("0." + std::string(400, '0') + "1e401"), 1);
  EXPECT_EQ(real_of("1" + std::string(400, '0') + "e-400"), 1);
  EXPECT_EQ(real_of("0." + std::string(400, '0') + "1"), 0);
  EXPECT_EQ(real_of("1e309"), HUGE_VAL);
  EXPECT_EQ(real_of("-1e99999999999999999999999"), -HUGE_VAL);
  EXPECT_EQ(real_of(std::string(400, '9')), HUGE_VAL);
  EXPECT_EQ(real_of("0.001e+400"), HUGE_VAL);
  EXPECT_TRUE(is_json("1e308", {}));
  EXPECT_FALSE(is_json("[1e309]", {}));
}

constexpr std::string_view kSample =
    "{\"name\": \"é😀\\u20ac\\ud83d\\ude00\", \"list\": [0, -1.5e+3, true, false, null, \"\\\\\"],"
    " \"inner\": {\"a\": {}, \"b\": []}}";

TEST(JsonReader, EveryTruncationIsRefused) {
  ASSERT_TRUE(is_json(kSample, {}));
  for (size_t size = 0; size < kSample.size(); ++size) {
    EXPECT_FALSE(is_json(kSample.substr(0, size), {})) << size;
  }
}

// A zero byte ends nlohmann's input, and repeated keys are nothing to it.
TEST(JsonReader, AgreesWithAnotherReader) {
  std::mt19937 random(5);
  constexpr std::string_view kBytes =
      "{}[],:\"\\0123456789.eE+-truefalsn u\n\t\xc3\xa9\xf0\x9f/bD8";
  Limits limits;
  limits.depth = SIZE_MAX;
  limits.may_repeat_keys = true;
  int accepted = 0;
  for (int round = 0; round < 60'000; ++round) {
    std::string text(kSample);
    if (round % 2 == 0) text = text.substr(random() % text.size(), 1 + random() % 12);
    for (uint32_t change = random() % 4; change > 0; --change) {
      const size_t at = random() % text.size();
      const char byte = kBytes[random() % kBytes.size()];
      if (random() % 3 == 0) {
        text.insert(at, 1, byte);
      } else {
        text[at] = byte;
      }
    }
    const bool theirs = nlohmann::json::accept(text);
    accepted += theirs;
    ASSERT_EQ(is_json(text, limits), theirs) << text;
  }
  EXPECT_GT(accepted, 500);
}

TEST(JsonReader, WhatIsEscapedReadsBack) {
  std::string all;
  for (int byte = 0; byte < 0x80; ++byte) all += char(byte);
  all += "é😀";
  EXPECT_EQ(escaped("a\"\\\b\f\n\r\t\x01/"), "a\\\"\\\\\\b\\f\\n\\r\\t\\u0001/");
  const std::string written = json::quoted(all);
  Reader back("JSON", written, {});
  ASSERT_TRUE(back.next());
  EXPECT_EQ(back.text(), all);
}

}  // namespace
}  // namespace cairn::json::reader_test
