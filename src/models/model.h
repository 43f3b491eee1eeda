// The interface of models to the engine: parameters, what each layer caches, and recording the
// forward pass. An architecture is one file below this folder, found by general.architecture
// through a generated table. Models see ops and kinds of state, no backend and no memory.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "gguf/metadata.h"
#include "graph/graph.h"
#include "memory/state.h"
#include "models/program.h"

namespace cairn::models {

struct ModelSize {
  int32_t width = 0;  // Of the residual stream.
  int32_t layer_count = 0;
  int32_t vocabulary_count = 0;  // Rows of the embedding table.
  int32_t context_length = 0;    // Positions that the model was made for.
};

// Immutable after its parameters are visited. Thread-safe then.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelSize& size() const = 0;  // Of the file, whatever runs of it.
  // Leaves out layers: these have no parameters and are not recorded. Once, before the parameters
  // are visited. Errors: unsupported, with the layer and why another needs it.
  virtual Status skip_layers(const Program& program) = 0;
  // Walks the one list of the model's parameters.
  virtual Status visit_parameters(ParameterVisitor& visitor) = 0;
  // What the layer keeps: nothing, or at most one of each kind.
  virtual std::vector<State> layer_states(int32_t layer) const = 0;
  // Whether attention is causal. Other models see a text at once, each token also the later ones:
  // they make vectors of whole texts, and keep nothing.
  virtual bool makes_text() const { return true; }
  // Whether it can score a text. Constant once the parameters are visited.
  virtual bool makes_scores() const { return false; }
  // Records the forward pass up to what g.makes() of the wanted outputs; vectors and scores through
  // g.set_output(). REQUIRES: visited parameters.
  virtual Tensor forward(Graph& g) const = 0;
};

struct Architecture {
  std::string_view name;  // As in general.architecture.
  Result<std::unique_ptr<Model>> (*create)(const gguf::Metadata& meta);
};

std::span<const Architecture* const> all_architectures();
// Errors: unsupported, with the list of those that are known.
Result<const Architecture*> find_architecture(std::string_view name);

// A model of a class with `Status read(const gguf::Metadata&)`.
template <class Class, class... Traits>
Result<std::unique_ptr<Model>> create_model(const gguf::Metadata& meta, const Traits&... traits) {
  auto model = std::make_unique<Class>(traits...);
  CAIRN_TRY(model->read(meta));
  return std::unique_ptr<Model>(std::move(model));
}

template <class Class>
constexpr Architecture architecture(std::string_view name) {
  return {.name = name, .create = &create_model<Class>};
}

// One of several that a function creates from traits.
template <auto create, const auto& traits>
constexpr Architecture variant(std::string_view name) {
  return {.name = name, .create = [](const gguf::Metadata& meta) { return create(meta, traits); }};
}

}  // namespace cairn::models
