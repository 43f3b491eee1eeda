// What the routes that make vectors of texts share, whatever their API. Thread-safe: pure, but for
// the service.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "engine/embedder.h"
#include "serve/fields.h"
#include "serve/routes/routes.h"

namespace cairn::serve {

struct VectorOrder {
  std::vector<std::vector<Token>> texts;
  bool truncates = false;                         // Texts that are longer than the context.
  std::optional<bool> normalizes = std::nullopt;  // As EmbedderOptions has it.
  std::string_view field = "input";               // Of the texts.
  ErrorForm form = ErrorForm::openai;
  // The reply. `token_count`: of all texts.
  std::function<void(std::vector<Embedding>& vectors, int64_t token_count, std::string& out)> write;
};

Checked<std::unique_ptr<http::Reply>> begin_vectors(const RouteContext& context,
                                                    http::Request& request, VectorOrder order);

// The texts of a field. Errors: 501 where the model is not served for vectors of texts, or, for
// llama.cpp's route, of tokens; texts that are empty, or longer than the context.
Checked<std::vector<std::vector<Token>>> read_vector_texts(const RouteContext& context,
                                                           const Body& body, std::string_view field,
                                                           bool truncates);

// As JSON: its first `dimensions` numbers, then of length 1 again; or the bytes of all in base64.
void append_vector(std::vector<float>& values, std::optional<size_t> dimensions, bool is_base64,
                   std::string& out);

}  // namespace cairn::serve
