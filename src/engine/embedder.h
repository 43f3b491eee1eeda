// Vectors of texts: one for each text from those of its tokens, or scores where a classifier makes
// them. Several texts go into one step; the bits of each depend on nothing but its own tokens. No
// memory is kept of any: pages are taken for a step and given back.
// Not thread-safe: the engine's thread owns it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace cairn {

struct EmbedderOptions {
  // Vectors of length 1. Absent: yes, but for pooling none and rank.
  std::optional<bool> normalizes;
  // What does not fit into the context is left out, but for the token that ends a text; else it is
  // an error.
  bool truncates = false;
};

struct Embedding {
  std::vector<float> values;  // [vectors][width]: one vector, or with pooling none one a token.
  int32_t token_count = 0;
};

class Embedder {
 public:
  // REQUIRES: the engine was loaded with EngineOptions::pooling.
  Embedder(Engine* engine, const EmbedderOptions& options);

  Pooling pooling() const { return pooling_; }
  // Of each vector: the model's width, or with pooling rank how many scores there are.
  int32_t width() const;

  // With the special tokens that the model wants around a text. Errors: no vocabulary.
  Result<std::vector<Token>> tokens_of(std::string_view text) const;
  // A question and what may answer it, as models that compare them want it. Errors: the same, or
  // a question that leaves no room for an answer.
  Result<std::vector<Token>> tokens_of_pair(std::string_view question,
                                            std::string_view answer) const;

  // One for each text, in order. Errors: a text without tokens, with unknown ones, or longer than
  // the context; no room; invalid_data: a vector that is not finite.
  Result<std::vector<Embedding>> embed(std::span<const std::vector<Token>> texts);

 private:
  struct Pooled;
  Result<std::span<const Token>> checked(std::span<const Token> text, size_t index,
                                         std::vector<Token>& place) const;
  Status read_in_pieces(std::span<const Token> text, Pooled& pooled);
  Result<size_t> read_together(std::span<const std::span<const Token>> texts,
                               std::span<Pooled> pooled);
  Result<Embedding> finish(Pooled pooled, size_t index) const;

  Engine* engine_;
  Pooling pooling_;
  bool normalizes_, truncates_;
};

}  // namespace cairn
