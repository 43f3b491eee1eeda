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

// How hidden rows reach a predictor: normalised by the gain of where they come from, or, where
// there is none, as they went into the last norm.
struct PredictorInput {
  Vector model_gain, own_gain;
  float norm_epsilon = 0;
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

  // A layer behind the others that predicts the token after the next one, from the next one and the
  // hidden row before it: whether the file says that there is one that the model can compute; its
  // parameters, which are not among the model's; what it keeps; its forward pass. In a layout of
  // its own it is layer 0. REQUIRES, but for the first: there is one; for the last two: both lists
  // of parameters are visited.
  virtual bool has_predictor() const { return false; }
  virtual Status visit_predictor(ParameterVisitor&) { return Ok{}; }
  virtual std::vector<State> predictor_states() const { return {}; }
  virtual Tensor predict(Graph&) const { return {}; }
  virtual PredictorInput predictor_input() const { return {}; }
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
