// `cairn embed`: vectors of texts, how near texts are to each other, or how well each of them
// answers a question where the model scores that.
// Thread rule: pure but for reading and computing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/embedder.h"

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

// What was computed, in the order of the texts.
struct EmbedReport {
  std::string model;
  Pooling pooling = Pooling::mean;
  int32_t width = 0;
  std::vector<std::string> texts;  // With pooling rank without the question.
  std::vector<Embedding> embeddings;
};

// A vector a line; of pooling none a token's a line, with an empty line between texts. Scores stand
// before their texts, the best one first.
std::string embed_text(const EmbedReport& report);
std::string embed_json(const EmbedReport& report);
// Cosines of all pairs, shaded by size. REQUIRES: a vector for each text.
std::string similarity_text(const EmbedReport& report);

// Errors: no texts, a file that cannot be read, options that contradict each other, and those of
// the engine.
Result<EmbedReport> embed(const EmbedArguments& arguments);

}  // namespace cairn::cli
