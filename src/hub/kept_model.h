// A model that is on this machine already, whoever has fetched it. Thread-safe: plain data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::hub {

enum class Keeper { cairn, hugging_face, llama_cpp, lm_studio, ollama };

// For people: "cairn", "Hugging Face", "llama.cpp" …
constexpr std::string_view name(Keeper keeper) {
  constexpr std::string_view kNames[] = {"cairn", "Hugging Face", "llama.cpp", "LM Studio",
                                         "Ollama"};
  return kNames[size_t(keeper)];
}

struct KeptModel {
  Keeper keeper = Keeper::cairn;
  std::string name;                // The reference by which it is found; else its path.
  std::string repo;                // OWNER/REPO; of Ollama's NAMESPACE/NAME. Empty: not known.
  std::string file;                // Its name there; of Ollama's the tag.
  std::vector<std::string> paths;  // Of a split model all parts that are there, in order.
  uint64_t bytes = 0;              // Of all.
  int64_t modified_seconds = 0;    // Since 1970.
  std::string sha256;              // Of the first file, where it is written down; else empty.
  bool is_partial = false;         // Only begun.
};

}  // namespace cairn::hub
