// Tools from clients: what is refused and where, and that depth costs no stack.
#include "chat/tools.h"

#include <gtest/gtest.h>

#include "chat/call_grammar.h"
#include "chat/literals.h"

namespace cairn::chat::tools_test {
namespace {

std::string refused(std::string_view json, ErrorCode code = ErrorCode::invalid_data) {
  const auto tools = read_tools(json);
  EXPECT_FALSE(tools) << json.substr(0, 80);
  if (tools) return "";
  EXPECT_EQ(tools.error().code, code);
  return tools.error().message;
}

std::string nested(size_t depth, std::string_view open, std::string_view inside,
                   std::string_view close) {
  std::string text;
  for (size_t i = 0; i < depth; ++i) text += open;
  text += inside;
  for (size_t i = 0; i < depth; ++i) text += close;
  return text;
}

std::string tool_with(const std::string& property) {
  return R"([{"type":"function","function":{"name":"f","parameters":{"type":"object",)"
         R"("properties":{"a":)" +
         property + "}}}}]";
}

TEST(Tools, ReadsNamesTypesAndSchemas) {
  auto tools =
      read_tools(R"([{"type":"function","function":{"name":"f","parameters":{"properties":)"
                 R"({"z":{"type":"string"},"a":{"enum":["x",1]},"n":{"type":["integer","number"],)"
                 R"("maximum":9007199254740993},"s":{"enum":["x"]}}}}},{"name":"g"}])");
  ASSERT_TRUE(tools) << tools.error().message;
  const Tool& tool = (*tools)[0];
  EXPECT_EQ(tool.name, "f");
  ASSERT_EQ(tool.types.size(), 4u);
  EXPECT_EQ(tool.types[0].first, "z");
  EXPECT_EQ(tool.type_of("z"), ParameterType::string);
  EXPECT_EQ(tool.type_of("a"), ParameterType::any);
  EXPECT_EQ(tool.type_of("n"), ParameterType::other);
  EXPECT_EQ(tool.type_of("s"), ParameterType::string);
  EXPECT_EQ(tool.type_of("none"), ParameterType::any);
  EXPECT_NE(tool.parameters.find("9007199254740993"), std::string::npos);
  EXPECT_EQ((*tools)[1].parameters, "{}");
}

TEST(Tools, RefusesWithTheReason) {
  EXPECT_EQ(refused("{}"), "tools: expected a list, found object");
  EXPECT_EQ(refused("[1"), "tools: line 1, column 3: expected \",\" or \"]\", found the end");
  EXPECT_EQ(refused("[{}]"), "tools[0]: expected a function with a name, found none");
  EXPECT_EQ(refused("[5]"), "tools[0]: expected a function with a name, found number");
  EXPECT_EQ(refused(R"([{"name":"f","parameters":[]}])"),
            "tools[0].parameters: expected an object, found array");
  EXPECT_EQ(refused(R"([{"name":"f"},{"name":"f"}])"),
            "tools[1].name: expected a new name, found \"f\" again");
  EXPECT_EQ(refused(R"([{"name":"f","name":"g"}])"),
            "tools: line 1, column 14: the key \"name\" comes twice");
}

TEST(Tools, DepthIsBounded) {
  for (const std::string_view open : {"[", R"({"items":)", R"({"enum":[)"}) {
    const std::string bomb = tool_with(nested(1'000'000, open, "", ""));
    EXPECT_NE(
        refused(bomb, ErrorCode::no_room).find("containers in each other: expected at most 64"),
        std::string::npos);
  }
  // The list, the tool, its function, the parameters and their properties are five.
  EXPECT_TRUE(read_tools(tool_with(nested(59, R"({"items":)", "{}", "}"))).error().code ==
              ErrorCode::no_room);
}

// As deep as a client may go, through every form of calls: an error that says so or a grammar.
TEST(Tools, TheDeepestSchemasAreFollowedOrRefused) {
  ChatFormat format;
  format.call.header = {{"<call>", CallField::name}};
  format.call.close = "</call>";
  format.call.name_key = "name";
  format.call.arguments_key = "arguments";
  format.call.mark = "|";
  format.call.key_open = "<p=";
  format.call.key_end = ">";
  format.call.value_close = "</p>";
  for (const char* open : {R"({"type":"array","items":)", R"({"anyOf":[)",
                           R"({"type":"object","properties":{"b":)", R"({"enum":[[)"}) {
    const std::string_view text = open;
    const size_t depth = text.ends_with("[[") ? 18 : text.ends_with("[") ? 28 : 27;
    const std::string close = text.ends_with("[[")     ? "]]}"
                              : text.ends_with("[")    ? "]}"
                              : text.ends_with("b\":") ? "}}"
                                                       : "}";
    auto tools = read_tools(tool_with(nested(depth, open, R"({"type":"null"})", close)));
    ASSERT_TRUE(tools) << open << tools.error().message;
    for (const CallShape shape : {CallShape::object, CallShape::parameters, CallShape::python,
                                  CallShape::braces, CallShape::elements}) {
      format.call.shape = shape;
      const auto made = call_grammar(format, *tools, {.choice = ToolChoice::required}, nullptr);
      EXPECT_TRUE(made || shape != CallShape::object) << open;
      if (!made) {
        EXPECT_EQ(made.error().code, ErrorCode::unsupported) << made.error().message;
      }
    }
  }
}

// What models write is JSON as long as it is no deeper than other literals may be.
TEST(Tools, DeepLiteralsAreTexts) {
  const std::string deep = nested(64, "[", "", "]"), deeper = nested(1'000'000, "[", "", "]");
  EXPECT_EQ(scalar_json(deep, ParameterType::any), deep);
  EXPECT_TRUE(scalar_json(deeper, ParameterType::any).starts_with("\"[["));
  EXPECT_EQ(scalar_json(R"({"a":1,"a":2})", ParameterType::any), R"({"a":1,"a":2})");
  EXPECT_EQ(scalar_json("1e999", ParameterType::any), "\"1e999\"");
  EXPECT_EQ(scalar_json(" 1.50 ", ParameterType::other), "1.50");
}

}  // namespace
}  // namespace cairn::chat::tools_test
