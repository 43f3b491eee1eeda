// Embedding vectors of texts, pooled from those of their tokens, or the scores of a classifier.
// Several texts are batched into one step; the bits of each depend on its own tokens alone. Nothing
// is cached: pages are allocated for a step and released. Not thread-safe: the engine's thread owns
// it.
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
  // Whether vectors are normalised to length 1. Absent: yes, except with pooling none and rank.
  std::optional<bool> normalizes;
  // Truncates texts that are longer than the context, but keeps the token that ends them; else they
  // are an error.
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
  // The length of each vector: the model's width, or with pooling rank the number of scores.
  int32_t width() const;

  // Tokens, with the special tokens that the model expects around a text. Errors: no vocabulary.
  Result<std::vector<Token>> tokens_of(std::string_view text) const;
  // The tokens of a query and a document, joined as a reranker expects them. Errors: the same, or a
  // query that leaves no room for the document.
  Result<std::vector<Token>> tokens_of_pair(std::string_view question,
                                            std::string_view answer) const;

  // That the text can be embedded. `index`: its own, for the error. Errors: no tokens, unknown
  // ones, more than the context.
  Status check(std::span<const Token> text, size_t index) const;
  // One for each text, in order. `first_index`: the first text's, for errors. Errors: those of
  // check(); no room; invalid_data: a vector that is not finite.
  Result<std::vector<Embedding>> embed(std::span<const std::vector<Token>> texts,
                                       size_t first_index = 0);

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
