// Traces: the file is what viewers read, at any moment; spans nest; its size has a limit; nobody
// else's file is taken for one.
#include "base/trace/trace.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "tests/scratch_folder.h"

namespace cairn::trace_test {
namespace {

using test::contents_of;
using test::ScratchFolder;

struct Event {
  std::string phase, name;
  int64_t thread = 0, task = 0;
  double begin = 0, length = 0;
};

// Every line but the brackets is an event: names and numbers without escapes.
std::vector<Event> events_of(const std::string& text) {
  std::vector<Event> events;
  const std::regex line(
      "\\{\"ph\":\"(\\w)\",\"pid\":1,\"tid\":(\\d+)(?:,\"ts\":(-?[0-9.]+))?(?:,\"dur\":([0-9.]+))?"
      "(?:,\"cat\":\"request\",\"id\":(\\d+))?,\"name\":\"([^\"]*)\"(?:,\"args\":\\{[^{}]*\\})?"
      "\\}");
  const auto number = [](const std::string& digits) {
    return digits.empty() ? 0.0 : std::stod(digits);
  };
  size_t lines = 0;
  for (std::sregex_iterator found(text.begin(), text.end(), line), end; found != end; ++found) {
    const std::smatch& parts = *found;
    events.push_back({.phase = parts[1],
                      .name = parts[6],
                      .thread = int64_t(number(parts[2])),
                      .task = int64_t(number(parts[5])),
                      .begin = number(parts[3]),
                      .length = number(parts[4])});
    lines += size_t(parts.length());
  }
  // Nothing lies between them but commas and line feeds.
  const bool is_ended = text.ends_with("\n]\n");
  EXPECT_EQ(text.size(), 2 + lines + 2 * (events.size() - 1) + (is_ended ? 3 : 0)) << text;
  return events;
}

TEST(Trace, SpansOfAThreadNest) {
  const ScratchFolder folder;
  const std::string path = folder.file("trace.json");
  std::unique_ptr<Trace> trace = Trace::open(path).value();
  {
    TraceSpan outer(trace.get(), "engine", "step");
    TraceSpan inner(trace.get(), "engine", "replay");
    inner.add("rows", 7);
    outer.rename("decode");
  }
  std::thread([&] { const TraceSpan span(trace.get(), "store reader", "store read"); }).join();
  // It is whole at any moment but for its end.
  EXPECT_EQ(events_of(contents_of(path)).size(), 6u);
  trace.reset();
  const std::string text = contents_of(path);
  EXPECT_TRUE(text.ends_with("\n]\n"));
  EXPECT_NE(text.find("\"args\":{\"rows\":7}"), std::string::npos);
  const std::vector<Event> events = events_of(text);
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[0].name, "process_name");
  EXPECT_EQ(events[1].name, "thread_name");
  const Event &replay = events[2], &decode = events[3], &read = events[5];
  EXPECT_EQ(replay.name, "replay");
  EXPECT_EQ(decode.name, "decode");
  EXPECT_EQ(replay.thread, decode.thread);
  EXPECT_LE(decode.begin, replay.begin);
  EXPECT_GE(decode.begin + decode.length, replay.begin + replay.length);
  EXPECT_EQ(read.name, "store read");
  EXPECT_NE(read.thread, decode.thread);
  struct stat found = {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
}

TEST(Trace, TasksHaveSpansOfTheirOwn) {
  const ScratchFolder folder;
  const std::string path = folder.file("trace.json");
  std::unique_ptr<Trace> trace = Trace::open(path).value();
  const int64_t first = trace->new_task(), second = trace->new_task();
  EXPECT_NE(first, second);
  const Trace::Figure figures[] = {{"prompt_tokens", 11}, {"reused_tokens", 3}};
  trace->begin(first, "request", {}, "an id\"\\\n\x01, of ä");
  trace->begin(second, "request");
  trace->begin(first, "reading", figures);
  trace->end(first, "reading");
  trace->end(first, "request");
  trace.reset();
  const std::string text = contents_of(path);
  EXPECT_NE(text.find("\"args\":{\"id\":\"an id____, of __\"}"), std::string::npos) << text;
  EXPECT_NE(text.find("{\"prompt_tokens\":11,\"reused_tokens\":3}"), std::string::npos);
  const std::vector<Event> events = events_of(text);
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[3].phase, "b");
  EXPECT_EQ(events[3].task, first);
  EXPECT_EQ(events[5].phase, "e");
  EXPECT_LE(events[3].begin, events[5].begin);
}

TEST(Trace, IsNoLargerThanItMayBe) {
  const ScratchFolder folder;
  const std::string path = folder.file("trace.json");
  std::unique_ptr<Trace> trace = Trace::open(path, 4096).value();
  for (int32_t count = 0; count < 1000; ++count) {
    const TraceSpan span(trace.get(), "engine", "decode");
  }
  const std::string text = contents_of(path);
  EXPECT_LE(text.size(), 4096u);
  EXPECT_GE(text.size(), 3500u);
  EXPECT_TRUE(text.ends_with("\n]\n"));
  EXPECT_GT(events_of(text).size(), 20u);
  trace.reset();
  EXPECT_EQ(contents_of(path), text);
}

TEST(Trace, ReplacesATraceAndNothingElse) {
  const ScratchFolder folder;
  const std::string path = folder.file("trace.json"), model = folder.file("model.gguf");
  for (int32_t run = 0; run < 2; ++run) {
    std::unique_ptr<Trace> trace = Trace::open(path).value();
    const TraceSpan span(trace.get(), "engine", run == 0 ? "load" : "decode");
  }
  EXPECT_EQ(contents_of(path).find("load"), std::string::npos);
  test::write_to(model, "GGUF and much more, which nobody wants to lose");
  const auto refused = Trace::open(model);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("expected a new file or an earlier trace"),
            std::string::npos);
  EXPECT_EQ(contents_of(model), "GGUF and much more, which nobody wants to lose");
  EXPECT_FALSE(Trace::open(folder.file("none/trace.json")));
  EXPECT_FALSE(Trace::open("/dev/null"));
}

TEST(Trace, NobodyIsToldWhereThereIsNone) {
  TraceSpan span(nullptr, "engine", "decode");
  span.add("rows", 1);
  span.rename("prompt");
}

}  // namespace
}  // namespace cairn::trace_test
