// What a request is about, for whoever chooses where it is computed: its prompt as a chain of keys,
// one for each message and each block of a long one, without a tokenizer. Knows the names that
// requests of all APIs have for what a model reads, and nothing else of them. Thread-safe: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/message.h"

namespace cairn::route {

struct PromptKeys {
  struct Prefix {
    uint64_t key;  // Of all that the prompt has up to here.
    size_t end;    // In bytes.
  };
  std::vector<Prefix> prefixes;  // The shortest first.
  uint64_t affinity = 0;         // The same for all requests of a conversation.
  // What it needs lies where this was made: a session's or a reply's name; empty: nothing.
  std::string owned;

  size_t bytes() const { return prefixes.empty() ? 0 : prefixes.back().end; }
};

// Bytes of a message after which its prefix has a key of its own.
constexpr size_t kBlockBytes = 1024;
// A prompt of more messages and blocks has keys for so many but one of them, and one for all of it:
// as many as a node has room for in the table. One request cannot take up all of it.
constexpr size_t kPrefixesMax = 8192;

// A body that is no JSON is a prompt without prefixes.
PromptKeys prompt_keys(const serve::http::RequestHead& head, std::string_view body);

// Whether the id of the reply names something that lies where the reply was made.
bool makes_owned(const serve::http::RequestHead& head, std::string_view body);

// The first id in the beginning of a reply or of a stream; empty: there is none.
std::string first_id(std::string_view reply);

// Spreads keys over all 64 bits, each for one node: whose is greatest is the first to be asked.
uint64_t weight_of(uint64_t key, uint64_t node);

}  // namespace cairn::route
