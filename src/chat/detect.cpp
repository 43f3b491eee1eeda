// Renderings side by side: what differs between a plain answer and one with calls is the calls.
#include "chat/detect.h"

#include <algorithm>
#include <optional>

#include "chat/call_shape.h"
#include "chat/families.h"
#include "chat/loose_match.h"
#include "chat/probe.h"

namespace cairn::chat {

namespace {

constexpr size_t kNone = std::string::npos;
constexpr std::string_view kMessageOpen = "<|message|>";
constexpr std::string_view kSwitches[] = {"enable_thinking", "thinking"};

using Text = std::optional<std::string>;

// The marker that a text ends with: <…>, […] or <…>word.
std::string_view last_marker(std::string_view text) {
  text = trimmed_right(text);
  const size_t begin = text.find_last_of("<[");
  if (begin == kNone || text.find('\n', begin) != kNone) return {};
  return text.substr(begin);
}

// The marker that a text begins with.
std::string_view first_marker(std::string_view text) {
  text = trimmed_left(text);
  if (text.empty() || (text.front() != '<' && text.front() != '[')) return {};
  const size_t end = text.find(text.front() == '<' ? '>' : ']');
  return end == kNone ? std::string_view() : text.substr(0, end + 1);
}

Text plain_turn(Prober& prober) {
  Text turn = prober.turn({});
  return turn ? turn : prober.turn({.has_tools = true});
}

void detect_switch(Prober& prober, ChatFormat& format) {
  for (const std::string_view name : kSwitches) {
    const Text off = prober.prompt({.switch_name = name, .switch_value = false});
    const Text on = prober.prompt({.switch_name = name, .switch_value = true});
    if (!off || !on || *off == *on) continue;
    format.reasoning_switch = name;
    return;
  }
}

// <header> open REASONING close [opening of the content] CONTENT
bool take_reasoning(std::string_view turn, ChatFormat& format) {
  const size_t reasoning = turn.find(kProbeReasoning);
  if (reasoning == kNone) return false;
  const std::string_view behind = turn.substr(reasoning + kProbeReasoning.size());
  const std::string_view open = last_marker(turn.substr(0, reasoning));
  const std::string_view close = first_marker(behind);
  if (close.empty()) return false;
  format.reasoning_open = open;
  format.reasoning_close = close;
  const size_t content = behind.find(kProbeContent);
  const std::string_view skipped = trimmed_left(behind).substr(close.size());
  if (content == kNone) return true;
  const std::string_view rest =
      trimmed(skipped.substr(0, std::min(skipped.find(kProbeContent), skipped.size())));
  if (!rest.empty() && !first_marker(rest).empty()) format.silent.emplace_back(rest);
  return true;
}

void detect_reasoning(Prober& prober, ChatFormat& format) {
  std::vector<Probe> probes = {{.has_reasoning = true}};
  for (const std::string_view name : kSwitches) {
    probes.push_back({.has_reasoning = true, .switch_name = name, .switch_value = true});
  }
  probes.push_back(
      {.has_content = false, .has_reasoning = true, .call_count = 1, .has_tools = true});
  for (const Probe& probe : probes) {
    const Text turn = prober.turn(probe);
    if (turn && take_reasoning(*turn, format)) return;
  }
}

// Texts that stand around a plain answer and are no part of the prompt.
void detect_silent(Prober& prober, std::string_view before, std::string_view after,
                   ChatFormat& format) {
  std::string prompts;
  for (const bool value : {false, true}) {
    for (const std::string_view name : kSwitches) {
      prompts += prober.prompt({.switch_name = name, .switch_value = value}).value_or("");
    }
  }
  prompts += prober.prompt({.has_tools = true}).value_or("");
  const std::string_view open = last_marker(before);
  const bool is_marker = !open.empty() && (open.back() == '>' || open.back() == ']');
  if (is_marker && prompts.find(open) == kNone && open != format.reasoning_close &&
      open != format.reasoning_open) {
    format.silent.emplace_back(open);
  }
  // A marker that stands alone ends the turn: the model's vocabulary knows it.
  const std::string_view close = first_marker(after);
  if (!close.empty() && trimmed(after) != close) format.silent.emplace_back(close);
}

// Answers as messages with headers of their own: <|channel|>final<|message|>…
bool detect_channels(Prober& prober, std::string_view plain_before, ChatFormat& format) {
  if (!trimmed_right(plain_before).ends_with(kMessageOpen)) return false;
  format.channels.message_open = kMessageOpen;
  format.channels.message_close = {"<|end|>", "<|call|>", "<|return|>", "<|eom|>", "<|eot|>"};
  format.channels.reasoning_close = format.reasoning_close;
  const std::string prompt = prober.prompt({}).value_or("");
  if (!prompt.empty() && plain_before.starts_with(prompt)) {
    format.channels.answer_header = plain_before.substr(prompt.size());
    const size_t turn = prompt.rfind("<|start|>");
    if (turn != kNone) format.channels.turn_open = prompt.substr(turn);
  }
  format.reasoning_open.clear();
  format.reasoning_close.clear();
  format.silent.clear();
  return true;
}

// How a template wants to be asked for calls before it writes them.
std::vector<Probe> call_probes(int call_count) {
  std::vector<Probe> probes;
  for (const bool is_text : {false, true}) {
    for (const bool has_tools : {true, false}) {
      for (const bool is_null : {false, true}) {
        probes.push_back({.has_content = false,
                          .call_count = call_count,
                          .is_text_arguments = is_text,
                          .is_null_content = is_null,
                          .has_tools = has_tools});
      }
    }
  }
  return probes;
}

// `found`: how the template was asked.
Text find_call_turn(Prober& prober, int call_count, Probe* found = nullptr) {
  for (const Probe& probe : call_probes(call_count)) {
    Text turn = prober.turn(probe);
    if (!turn) continue;
    const bool has_names = turn->find(kProbeNames[0]) != kNone &&
                           (call_count == 1 || turn->find(kProbeNames[1]) != kNone);
    const bool has_keys = turn->find(kProbeKeys[0]) != kNone &&
                          turn->find("\\\"" + std::string(kProbeKeys[0])) == kNone;
    if (!has_names || !has_keys) continue;
    if (found != nullptr) *found = probe;
    return turn;
  }
  return std::nullopt;
}

// Takes an empty reasoning from the front.
std::string_view without_reasoning(std::string_view text, const ChatFormat& format) {
  if (format.reasoning_close.empty()) return text;
  for (const std::string* marker : {&format.reasoning_open, &format.reasoning_close}) {
    const std::string_view rest = trimmed_left(text);
    if (rest.starts_with(trimmed(*marker))) text = rest.substr(trimmed(*marker).size());
  }
  return text;
}

// The part of a turn with calls in which it differs from a plain one.
std::string call_region(std::string_view turn, std::string_view before, std::string_view after,
                        const ChatFormat& format) {
  if (!format.channels.message_open.empty()) {
    const size_t name = turn.find(kProbeKeys[0]);
    const size_t open = turn.substr(0, name).rfind(kMessageOpen);
    if (open != kNone) return std::string(turn.substr(open + kMessageOpen.size()));
  }
  const size_t begin = shared_front(before, turn);
  std::string_view region = without_reasoning(turn.substr(begin), format);
  region.remove_suffix(shared_back(region, after));
  const std::string_view end = first_marker(after);
  const bool ends_turn = !end.empty() && end == trimmed(after);
  return std::string(region.substr(0, ends_turn ? region.find(end, 1) : kNone));
}

void detect_calls(Prober& prober, std::string_view before, std::string_view after,
                  ChatFormat& format) {
  Probe probe;
  const Text one = find_call_turn(prober, 1, &probe);
  if (!one) return;
  const bool has_recipient = one->find("to=functions.") != kNone;
  if (!format.channels.message_open.empty() && has_recipient) {
    format.call.shape = CallShape::arguments;
    format.call.header = {{"", CallField::name}};
    return;
  }
  const Text two = find_call_turn(prober, 2);
  CallRegions regions;
  regions.one = call_region(*one, before, after, format);
  if (two) regions.two = call_region(*two, before, after, format);
  // So that texts with ids differ in nothing else.
  for (size_t id = 0; (id = regions.two.find(kProbeIds[1], id)) != kNone;) {
    regions.two.replace(id, kProbeIds[1].size(), kProbeIds[0]);
  }
  const size_t begin = shared_front(before, *one);
  regions.plain = before.substr(std::min(begin, before.size()));
  regions.has_channels = !format.channels.message_open.empty();
  read_shape(regions, format.call);
  format.call.wants_text_arguments = probe.is_text_arguments;
  format.call.wants_null_content = probe.is_null_content;
}

// Some templates check how ids look.
void detect_id_length(Prober& prober, CallFormat& format) {
  for (Probe probe : call_probes(1)) {
    if (!prober.turn(probe)) continue;
    probe.ids[0] = "call_0123456789abcdef";
    if (!prober.turn(probe)) format.id_length = kProbeIds[0].size();
    return;
  }
}

}  // namespace

ChatFormat detect(const chat::ChatTemplate& chat_template) {
  Prober prober(chat_template);
  ChatFormat format;
  detect_switch(prober, format);
  detect_reasoning(prober, format);
  add_reasoning_family(chat_template.source(), format);
  const Text plain = plain_turn(prober);
  const size_t content = plain ? plain->find(kProbeContent) : kNone;
  if (content != kNone) {
    const std::string_view before = std::string_view(*plain).substr(0, content);
    const std::string_view after = std::string_view(*plain).substr(content + kProbeContent.size());
    if (!detect_channels(prober, before, format)) detect_silent(prober, before, after, format);
    detect_calls(prober, before, after, format);
  }
  if (format.call.shape == CallShape::none) {
    find_call_family(chat_template.source(), format.call);
  } else {
    detect_id_length(prober, format.call);
  }
  add_family_traits(chat_template.source(), format);
  const std::string prompt = prober.prompt({}).value_or("");
  format.opens_reasoning =
      !format.reasoning_open.empty() && trimmed_right(prompt).ends_with(format.reasoning_open);
  if (!prober.is_spent()) return format;
  // What was found before the budget was spent is no more than a part.
  ChatFormat unknown;
  unknown.is_undetected = true;
  return unknown;
}

}  // namespace cairn::chat
