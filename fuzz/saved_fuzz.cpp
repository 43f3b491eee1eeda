// What cairn has written, as a stranger may have changed it: sessions of a server, conversations,
// lists of layers, streams of events, names. The first byte chooses which. What is read is written
// as a text that reads back to the same, and a stream means the same however it is cut.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "gguf/split.h"
#include "json/value.h"
#include "serve/sessions/session_files.h"
#include "serve/sessions/session_state.h"
#include "session/program/skip_file.h"
#include "session/transcript.h"
#include "terminal_chat/event_reader.h"

using namespace cairn;

namespace {

constexpr json::Limits kLimits{};

void read_session(std::string_view text) {
  auto session = serve::read_session("file", text);
  if (!session) return;
  const std::string written = serve::session_text(*session);
  auto again = serve::read_session("file", written);
  CHECK(again);
  CHECK(serve::session_text(*again) == written);
}

void read_conversation(std::string_view text) {
  auto value = json::read_value("file", text, kLimits);
  if (!value) return;
  auto transcript = session::read_transcript("file", *value);
  if (!transcript) return;
  const std::string written = json::to_text(session::transcript_json(*transcript));
  auto again = json::read_value("file", written, kLimits);
  CHECK(again);
  auto same = session::read_transcript("file", *again);
  CHECK(same);
  CHECK(json::to_text(session::transcript_json(*same)) == written);
}

void read_layers(std::string_view text) {
  auto file = session::read_skip_file("file", text);
  if (!file) return;
  const std::string written = session::skip_file_text(*file);
  auto again = session::read_skip_file("file", written);
  CHECK(again);
  CHECK(session::skip_file_text(*again) == written);
}

std::string told(std::string_view stream, size_t cut) {
  std::string text;
  session::AnswerHooks hooks;
  hooks.on_text = [&](std::string_view piece) { text += piece; };
  terminal_chat::EventReader reader(&hooks);
  reader.add(stream.substr(0, cut));
  reader.add(stream.substr(cut));
  auto answer = std::move(reader).finish();
  return text + (answer ? "" : answer.error().message);
}

void read_names(std::string_view text) {
  if (serve::is_session_name(text)) {
    CHECK(text.find('/') == text.npos && text.front() != '.' && text.size() <= 128);
  }
  const auto split = gguf::parse_split_name(text);
  if (!split) return;
  CHECK(split->part >= 1 && split->part <= split->part_count);
  CHECK(gguf::split_path(split->stem, split->part, split->part_count) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  switch (data[0] % 5) {
    case 0:
      read_session(text);
      break;
    case 1:
      read_conversation(text);
      break;
    case 2:
      read_layers(text);
      break;
    case 3:
      CHECK(told(text, text.size()) == told(text, text.size() * data[1] / 256));
      break;
    default:
      read_names(text);
  }
  return 0;
}
