// Grammars of calls: they take what templates write themselves, and whatever else they take is read
// back as calls that fit the tools' schemas.
#include "chat/call_grammar.h"

#include <gtest/gtest.h>

#include <regex>

#include "chat/detect.h"
#include "chat/loose_match.h"
#include "tests/chat/reading.h"
#include "tests/chat/schema_check.h"
#include "tests/chat/template_fixtures.h"
#include "tests/chat/template_turns.h"
#include "tests/grammar/toy_vocabulary.h"
#include "tests/sanitized.h"

namespace cairn::chat::call_grammar_test {
namespace {

using grammar::Matcher;
using grammar::must;

// Without what stands around answers of all kinds, and without the instructions that one template
// puts there.
std::string written(const ChatFormat& format, std::string_view output) {
  output = output.substr(0, output.find("<|START_OF_TURN_TOKEN|>"));
  if (output.starts_with("<|CHATBOT_TOKEN|>")) output.remove_prefix(17);
  output = trimmed_right(output);
  for (const std::string& text : format.silent) {
    if (output.ends_with(text)) output.remove_suffix(text.size());
  }
  return std::string(output);
}

// Byte by byte, as an answer is read: reasoning is free.
bool fits(Matcher& matcher, const ChatFormat& format, const std::vector<Tool>& tools,
          const Turn& turn, std::string& read) {
  OutputParser parser(format, {.tools = tools, .prompt = turn.prompt});
  std::vector<OutputEvent> events;
  grammar::State state = matcher.start();
  for (const char byte : written(format, turn.output)) {
    const bool was_free = parser.is_reasoning();
    parser.push({&byte, 1}, events);
    read += byte;
    if (was_free) continue;
    auto next = matcher.advance(state, std::string_view(&byte, 1));
    if (!next) return false;
    state = *next;
  }
  if (matcher.is_complete(state)) return true;
  // Some templates leave out what closes a single call's section, or it ends the turn.
  auto closed = matcher.advance(state, trimmed(format.call.section_close));
  return closed && matcher.is_complete(*closed);
}

TEST(CallGrammar, TakesWhatTemplatesWrite) {
  const auto templates = shared_templates();
  if (templates.empty()) GTEST_SKIP() << "no shared fixtures here";
  const std::vector<Tool> tools = tools_of(kTools);
  const auto tokens = grammar::TokenTrie::build(*grammar::toy_tokenizer());
  int count = 0;
  for (const auto& [name, chat_template] : templates) {
    const ChatFormat format = detect(chat_template);
    for (const int call_count : {1, 2}) {
      const auto found = find_case(chat_template, {.call_count = call_count});
      if (!found) continue;
      // Messages of their own: an answer ends with the first.
      if (call_count == 2 && !format.channels.message_open.empty()) continue;
      for (const ToolChoice choice : {ToolChoice::required, ToolChoice::automatic}) {
        const CallDemand demand{.choice = choice, .prompt_end = found->turn.prompt};
        auto compiled = call_grammar(format, tools, demand, nullptr);
        ASSERT_TRUE(compiled) << name << ": " << compiled.error().message;
        const auto matcher = must(Matcher::build(*compiled, tokens));
        std::string read;
        EXPECT_TRUE(fits(*matcher, format, tools, found->turn, read))
            << name << ", choice " << int(choice) << ": refused behind\n"
            << read << "\nof\n"
            << found->turn.output;
      }
      ++count;
    }
  }
  std::printf("answers with calls that templates wrote: %d\n", count);
  EXPECT_GE(count, 100);
}

constexpr std::string_view kHardTools =
    R"([{"name":"plan_trip","parameters":{"type":"object","properties":{)"
    R"("town":{"type":"string"},"mode":{"type":"string","enum":["car","on foot"]},)"
    R"("days":{"type":"integer","minimum":2,"maximum":40},"code":{"type":"string",)"
    R"("pattern":"^[A-Z]{2}[<-@]?[0-9]+$"},"nick":{"type":"string","minLength":2,"maxLength":5},)"
    R"("when":{"type":"string","format":"date"},"price":{"type":"number"},)"
    R"("fast":{"type":"boolean"},"stops":{"type":"array","items":{"type":"string"},)"
    R"("minItems":1,"maxItems":3},"spot":{"type":"object","properties":{"x":{"type":"number"},)"
    R"("name":{"type":"string"}},"required":["x","name"],"additionalProperties":false}},)"
    R"("required":["town","mode","code","nick","stops","spot"],"additionalProperties":false}},)"
    R"({"name":"stop","parameters":{"type":"object","properties":{}}},)"
    R"({"name":"say","parameters":{"type":"object","properties":{"loud":{"type":"boolean"},)"
    R"("text":{"type":"string"}}}}])";

// Walks at random, and after some steps takes what leads to an end wherever it may.
std::string walk(Matcher& matcher, const tokenize::Tokenizer& tokenizer, int32_t first_closing,
                 std::mt19937& random) {
  grammar::State state = matcher.start();
  std::string text;
  const size_t calm = random() % 200;
  for (size_t step = 0; step < 6000; ++step) {
    if (matcher.is_finished(state)) return text;
    const bool is_hurried = step > calm;
    if (matcher.is_complete(state) && (is_hurried || random() % 4 == 0)) return text;
    const grammar::TokenMask mask = must(matcher.mask(state));
    std::vector<int32_t> allowed, closing;
    for (int32_t token = 0; size_t(token) < tokenizer.token_count(); ++token) {
      if (tokenizer.is_end_of_generation(Token(token)) || !grammar::allows(mask, token)) continue;
      allowed.push_back(token);
      const std::string_view piece = tokenizer.piece(Token(token));
      const bool is_sign = piece.size() == 1 &&
                           std::string_view("\"'}]),:").find(piece[0]) != std::string_view::npos;
      if (token >= first_closing || is_sign) closing.push_back(token);
    }
    if (allowed.empty()) {
      ADD_FAILURE() << "nothing may follow\n" << text;
      return text;
    }
    const bool closes = !closing.empty() && (is_hurried || random() % 3 == 0);
    const std::vector<int32_t>& from = closes ? closing : allowed;
    const int32_t token = from[random() % from.size()];
    text += tokenizer.piece(Token(token));
    state = must(matcher.advance(state, Token(token)));
  }
  ADD_FAILURE() << "never ends:\n" << text;
  return text;
}

std::vector<std::string> closings_of(const CallFormat& call) {
  std::vector<std::string> words;
  for (const std::string* text : {&call.value_close, &call.close, &call.section_close, &call.mark,
                                  &call.key_open, &call.arguments_open}) {
    const std::string word(trimmed(*text));
    if (word.size() > 1 && word.size() < 200) words.push_back(word);
  }
  if (call.has_margin) words.push_back("\n" + std::string(trimmed(call.value_close)));
  if (call.has_cdata) words.push_back("]]>");
  if (call.shape == CallShape::elements) words.push_back(call.mark + "</");
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

void check_reading(const Reading& reading, const std::vector<Tool>& tools,
                   const std::string& where) {
  ASSERT_FALSE(reading.calls.empty()) << where;
  EXPECT_EQ(reading.text, "") << where;
  for (const Call& call : reading.calls) {
    EXPECT_TRUE(call.is_whole) << where;
    const Tool* tool = find_tool(tools, call.name);
    ASSERT_NE(tool, nullptr) << where;
    const Json arguments = Json::parse(call.arguments, nullptr, false);
    ASSERT_FALSE(arguments.is_discarded()) << where << "\n" << call.arguments;
    EXPECT_EQ(schema_fault(arguments, Json::parse(tool->parameters), "arguments"), "")
        << where << "\n"
        << call.arguments;
  }
}

TEST(CallGrammar, WhateverItTakesIsReadBackAndFitsTheSchemas) {
  const auto templates = shared_templates();
  if (templates.empty()) GTEST_SKIP() << "no shared fixtures here";
  const std::vector<Tool> tools = tools_of(kHardTools);
  std::mt19937 random(7);
  int walks = 0, formats = 0;
  for (const auto& [name, chat_template] : templates) {
    const ChatFormat format = detect(chat_template);
    if (format.call.shape == CallShape::none) continue;
    const auto tokenizer = grammar::toy_tokenizer(closings_of(format.call));
    const auto tokens = grammar::TokenTrie::build(*tokenizer);
    const std::string prompt = format.call.text_name.empty() ? "" : format.call.header[0].before;
    const CallDemand demand{.choice = ToolChoice::required, .prompt_end = prompt};
    auto compiled = call_grammar(format, tools, demand, nullptr);
    ASSERT_TRUE(compiled) << name << ": " << compiled.error().message;
    const auto matcher = must(Matcher::build(*compiled, tokens));
    ++formats;
    for (uint32_t seed = 0; seed < test::cases(12); ++seed, ++walks) {
      SCOPED_TRACE(name);
      // Reasoning that it opens itself would have to be ended first.
      std::string text = walk(*matcher, *tokenizer, 256, random);
      const Reading reading = read(format, {.tools = tools, .prompt = prompt}, text);
      if (!reading.reasoning.empty()) continue;
      check_reading(reading, tools, name + ":\n" + text);
      if (HasFailure()) return;
    }
  }
  std::printf("walks: %d through the calls of %d formats\n", walks, formats);
  EXPECT_GE(formats, 60);
}

ChatFormat marked_by_tokens() {
  ChatFormat format;
  format.call.shape = CallShape::object;
  format.call.header = {{"<think>", CallField::name}};
  format.call.close = "</think>";
  format.call.name_key = "name";
  format.call.arguments_key = "arguments";
  return format;
}

TEST(CallGrammar, MarksThatAreTokensAreChosenAsTokens) {
  const auto tokenizer = grammar::toy_tokenizer();
  const std::vector<Tool> tools = tools_of(kHardTools);
  const Token open{256}, close{257};
  for (const ToolChoice choice : {ToolChoice::required, ToolChoice::automatic, ToolChoice::none}) {
    const auto matcher = must(Matcher::build(
        must(call_grammar(marked_by_tokens(), tools, {.choice = choice}, tokenizer.get())),
        grammar::TokenTrie::build(*tokenizer)));
    const grammar::TokenMask mask = must(matcher->mask(matcher->start()));
    EXPECT_EQ(grammar::allows(mask, index_of(open)), choice != ToolChoice::none);
    EXPECT_FALSE(grammar::allows(mask, index_of(close)));
    EXPECT_EQ(grammar::allows(mask, '<'), choice != ToolChoice::required) << "text may hold it";
    // Spelled by letters it is not taken, as the parser would read it as a mark.
    EXPECT_FALSE(matcher->advance(matcher->start(), "<think>"));
    if (choice == ToolChoice::none) continue;
    grammar::State state = must(matcher->advance(matcher->start(), open));
    state = must(matcher->advance(state, R"({"name": "stop", "arguments": {}})"));
    EXPECT_FALSE(matcher->is_complete(state));
    EXPECT_TRUE(matcher->is_complete(must(matcher->advance(state, close))));
  }
}

TEST(CallGrammar, WhatAFormCannotKeepIsNamed) {
  ChatFormat braces = marked_by_tokens();
  braces.call.shape = CallShape::braces;
  braces.call.mark = "''";
  ChatFormat tags = marked_by_tokens();
  tags.call.shape = CallShape::parameters;
  tags.call.key_open = "<p=";
  tags.call.key_end = ">";
  tags.call.value_close = "</p>";
  const auto told = [](const ChatFormat& format, const std::string& property) {
    const std::vector<Tool> tools = tools_of(
        R"([{"name":"f","parameters":{"type":"object","properties":{"a":)" + property + "}}}]");
    auto made = call_grammar(format, tools, {.choice = ToolChoice::required}, nullptr);
    return made ? "" : made.error().message;
  };
  constexpr const char* kString = R"({"type":"string"})";
  EXPECT_EQ(told(braces, kString), "");
  EXPECT_EQ(told(tags, kString), "");
  EXPECT_NE(told(braces, R"({"type":"array","items":{"type":"string"},"uniqueItems":true})")
                .find("f.a: uniqueItems cannot be kept"),
            std::string::npos);
  EXPECT_NE(told(tags, R"({"type":"string","pattern":"a","minLength":2})")
                .find("f.a: more than one of pattern, format and a length"),
            std::string::npos);
  EXPECT_NE(told(tags, R"({"type":"string","enum":["x</p>"]})").find("holds a mark of the form"),
            std::string::npos);
  EXPECT_NE(told(tags, R"({"type":"string","enum":["x","y"],"pattern":"x"})")
                .find("f.a: pattern cannot be kept"),
            std::string::npos);
  EXPECT_NE(told(braces, R"({"enum":["x",7],"maximum":5})").find("f.a: maximum cannot be kept"),
            std::string::npos);
  EXPECT_NE(told(braces, R"({"$ref":"#/$defs/a","enum":["x"]})").find("f.a: enum beside $ref"),
            std::string::npos);
  EXPECT_NE(told(tags, R"({"type":"object","not":{"required":["b"]}})").find("f.a: schema"),
            std::string::npos);
}

// 答 and 称 begin with the same byte: what differs between the two turns begins within them.
TEST(CallGrammar, MarksAreWholeCharacters) {
  auto chat_template = chat::ChatTemplate::parse(
      "{% for m in messages %}<|{{ m.role }}|>{% if m.tool_calls %}"
      "{% for call in m.tool_calls %}称{\"name\": \"{{ call.function.name }}\", \"arguments\": "
      "{{ call.function.arguments | tojson }}}{% endfor %}{% else %}答{{ m.content }}{% endif %}"
      "<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}");
  ASSERT_TRUE(chat_template) << chat_template.error().message;
  ChatFormat format = detect(*chat_template);
  ASSERT_EQ(format.call.shape, CallShape::object);
  EXPECT_EQ(format.call.header[0].before, "称");
  const std::vector<Tool> tools = tools_of(kHardTools);
  EXPECT_TRUE(call_grammar(format, tools, {.choice = ToolChoice::none}, nullptr));
  format.call.header[0].before = "\xb0";
  auto broken = call_grammar(format, tools, {.choice = ToolChoice::none}, nullptr);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace cairn::chat::call_grammar_test
