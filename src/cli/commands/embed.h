// `cairn embed`: vectors of texts, how near texts are to each other, or how well each of them
// answers a question where the model scores that. Texts are embedded and printed some at a time, so
// that their number is not bounded by memory.
// Thread rule: pure but for reading, computing and printing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/embedder.h"
#include "terminal/terminal.h"

namespace cairn::cli {

struct EmbedArguments {
  std::string model_path;
  std::vector<std::string> texts;
  std::string texts_path;  // A text a line, behind the others; "-": standard input.
  std::string pooling;     // Empty: as the file says.
  std::optional<bool> normalizes;
  bool truncates = false;
  bool similarity = false;  // A table of cosines instead of vectors.
  bool json = false;        // As OpenAI's interface has it.
  EngineOptions engine;
};

// Prints a vector a line; of pooling none a token's a line, with an empty line between texts.
// Scores stand before their texts, the best one first. Nothing is printed where a text cannot be
// embedded. Errors: no texts, too many for a table, a file that cannot be read, options that
// contradict each other, and those of the engine.
Status print_embeddings(const EmbedArguments& arguments, terminal::TextOut& out);

}  // namespace cairn::cli
