// A conversation as a file: {"messages": [{"role": …, "content": …}, …]}, the form that chat
// clients send, with reasoning_content, tool_calls and tool_call_id where there are any. Answers
// have "token_ids", numbers with blanks between them, and the object has the "vocabulary" that they
// belong to, and the "sampling" of the last answer: a "seed", and what samplers remember as "state"
// (sample/state_text.h). Others ignore these. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "json/value.h"
#include "sample/state.h"
#include "session/conversation.h"

namespace cairn::session {

struct Transcript {
  std::vector<Message> messages;
  // Tokenizer::digest() of the vocabulary that the messages' tokens are ids of, where they have
  // any.
  std::optional<uint64_t> vocabulary = {};
  // By which the last answer was sampled, so that it can be gone on with as if it had not stopped.
  std::optional<uint64_t> seed = {};
  sample::SamplerState sampler = {};
};

// Replaces the file as a whole or not at all, readable by its owner alone. Bytes that are not UTF-8
// become U+FFFD. Errors: io.
Status write_transcript(const std::string& path, const Transcript& transcript);

// Errors: not_found, io, no_room, and invalid_data that names what is not as expected: an optional
// first system message, then user and assistant in turn, with results of tools behind calls.
Result<Transcript> read_transcript(const std::string& path);

// The same as JSON, and parts of it. `path`, `where`: what errors begin with.
json::Value transcript_json(const Transcript& transcript);
Result<Transcript> read_transcript(const std::string& path, const json::Value& json);
json::Value message_json(const Message& message);
Result<Message> read_message(const json::Value& json, const std::string& path, size_t index);
Result<std::vector<Token>> read_token_ids(const json::Value& json, const std::string& where);
// Sixteen digits; nothing where the object has none.
Result<std::optional<uint64_t>> read_vocabulary(const json::Value& json, const std::string& path);
std::string vocabulary_text(uint64_t digest);

// Drops the messages' tokens where they are those of another vocabulary. Errors: invalid_data: ids
// that it does not have.
Status take_tokens(std::span<Message> messages, std::optional<uint64_t> vocabulary,
                   const tokenize::Tokenizer& tokenizer, const std::string& path);

}  // namespace cairn::session
