// The tables. The first row whose phrase is found counts.
#include "chat/families.h"

#include <iterator>

#include "chat/cdata.h"

namespace cairn::chat {

namespace {

struct CallFamily {
  std::string_view phrase;
  CallShape shape;
  std::string_view section_open, section_close;
  std::string_view open, behind_name, arguments_open, close;
  std::string_view arguments_key = "arguments";
  CallGrouping grouping = CallGrouping::each;
};

constexpr CallFamily kCallFamilies[] = {
    // Kimi: its template changes a list, which the sandbox refuses.
    {"<|tool_calls_section_begin|>", CallShape::arguments, "<|tool_calls_section_begin|>",
     "<|tool_calls_section_end|>", "<|tool_call_begin|>functions.", ":",
     "<|tool_call_argument_begin|>", "<|tool_call_end|>"},
    {"<｜tool▁calls▁begin｜>", CallShape::arguments, "<｜tool▁calls▁begin｜>",
     "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "", "\n```json\n",
     "\n```<｜tool▁call▁end｜>"},
    // LFM2 writes calls that its template never shows.
    {"<|tool_response_start|>", CallShape::python, "", "", "<|tool_call_start|>", "", "",
     "<|tool_call_end|>"},
    {"List of tools: ", CallShape::python, "", "", "<|tool_call_start|>", "", "",
     "<|tool_call_end|>"},
    {"<|tool_call|>", CallShape::object, "", "", "<|tool_call|>", "", "", "", "arguments",
     CallGrouping::list},
    {"functools[", CallShape::object, "", "", "functools", "", "", "", "arguments",
     CallGrouping::list},
    {"Write 'Action:'", CallShape::object, "", "", "Action:\n```json", "", "", "```", "parameters",
     CallGrouping::list},
    {"Write \\'Action:\\'", CallShape::object, "", "", "Action:\n```json", "", "", "```",
     "parameters", CallGrouping::list},
    {"<tool_call>", CallShape::object, "", "", "<tool_call>", "", "", "</tool_call>"},
};

struct Pair {
  std::string_view phrase, open, close;
  bool overrides = false;  // What a rendering shows misleads.
};

constexpr std::string_view kKimi3 = "open_tag('think'";

constexpr Pair kReasoning[] = {
    {kKimi3, "<|open|>think<|sep|>", "<|close|>think<|sep|>", true},
    {"[BEGIN FINAL RESPONSE]", "Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", true},
    {"[THINK]", "[THINK]", "[/THINK]"},
    {"</think>", "<think>", "</think>"},
    {"<think>", "<think>", "</think>"},
    {"<|START_THINKING|>", "<|START_THINKING|>", "<|END_THINKING|>"},
    {"<|channel>thought", "<|channel>thought", "<channel|>"},
};

bool has(std::string_view source, std::string_view phrase) {
  return source.find(phrase) != std::string_view::npos;
}

}  // namespace

bool find_call_family(std::string_view source, CallFormat& format) {
  for (const CallFamily& family : kCallFamilies) {
    if (!has(source, family.phrase)) continue;
    format.shape = family.shape;
    format.section_open = family.section_open;
    format.section_close = family.section_close;
    format.header = {{std::string(family.open), CallField::name}};
    if (!family.behind_name.empty()) {
      format.header.push_back({std::string(family.behind_name), CallField::index});
    }
    format.arguments_open = family.arguments_open;
    format.close = family.close;
    format.name_key = "name";
    format.arguments_key = family.arguments_key;
    format.grouping = family.grouping;
    return true;
  }
  return false;
}

void add_reasoning_family(std::string_view source, ChatFormat& format) {
  for (const Pair& pair : kReasoning) {
    if (!has(source, pair.phrase) || (!pair.overrides && !format.reasoning_close.empty())) continue;
    format.reasoning_open = pair.open;
    format.reasoning_close = pair.close;
    return;
  }
}

void add_family_traits(std::string_view source, ChatFormat& format) {
  // Llama 3 may write this token before its JSON.
  if (format.call.shape == CallShape::object && has(source, "<|python_tag|>")) {
    format.call.other_open = "<|python_tag|>";
  }
  format.call.has_cdata = format.call.shape == CallShape::parameters && has(source, kCdataOpen);
  // Granite 3 is told to write both its thoughts and its answer between tags.
  if (has(source, "<response></response>")) format.silent = {"<response>", "</response>"};
  if (has(source, kKimi3)) {
    format.silent = {"<|open|>response<|sep|>", "<|close|>response<|sep|>",
                     "<|close|>message<|sep|>"};
  }
}

}  // namespace cairn::chat
