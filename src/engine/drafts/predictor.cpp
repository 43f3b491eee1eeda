// Loading a predicting layer.
#include "engine/drafts/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/log.h"
#include "engine/parameter_loader.h"
#include "graph/graph.h"

namespace cairn {

namespace {

// Rows of a step: those that a step of the model has confirmed.
constexpr int32_t kConfirmedMax = 64;
// Of the model's budget: a layer keeps little beside all others, and no past beyond an answer.
constexpr size_t kBudgetShare = 16;
constexpr size_t kBlocksLeast = 8;

size_t budget_of(const memory::Layout& layout, const EngineOptions& options) {
  size_t least = 0;
  for (const memory::GroupSpec& group : layout.groups) least += kBlocksLeast * group.block_bytes;
  return std::max(options.memory_budget / kBudgetShare, least);
}

}  // namespace

Result<std::unique_ptr<Predictor>> Predictor::load(models::Model* model, const gguf::File* file,
                                                   Backend* backend, const EngineOptions& options) {
  std::unique_ptr<Predictor> made;
  if (!model->has_predictor()) return made;
  const int32_t layer = model->size().layer_count;
  if (file->find(fmt::format("blk.{}.nextn.eh_proj.weight", layer)) == nullptr) {
    log::warning("{}: says that it has a layer that predicts further tokens, and lacks it",
                 file->name());
    return made;
  }
  made.reset(new Predictor());
  made->model_ = model;
  CAIRN_TRY(made->load_weights(*file, *backend));
  CAIRN_TRY(made->prepare_memory(*backend, options));
  return made;
}

Status Predictor::load_weights(const gguf::File& file, Backend& backend) {
  ParameterLoader loader(&file);
  CAIRN_TRY(model_->visit_predictor(loader));
  const std::vector<Weight*> matrices = std::move(loader).take_matrices();
  vectors_ = std::move(loader).take_vectors();
  for (Weight* weight : matrices) CAIRN_TRY(backend.load(*weight));
  input_ = model_->predictor_input();
  return Ok{};
}

Status Predictor::prepare_memory(Backend& backend, const EngineOptions& options) {
  const std::vector<std::vector<State>> states = {model_->predictor_states()};
  memory::Layout layout =
      memory::Layout::make(states, backend.page_format(), options.key_type, options.value_type);
  Graph graph(layout, {.rounds_prompts = backend.rounds_prompts(),
                       .alignment = backend.piece_alignment()});
  const Tensor logits = model_->predict(graph);
  const int32_t rows = std::min(kConfirmedMax, options.context_tokens);
  Plans plans = std::move(graph).finish(logits, {.row_count_max = rows, .output_count_max = 1});
  fixed_bytes_ = {.weights = backend.weight_bytes(plans.step),
                  .plans = recorded_bytes(plans.step) + recorded_bytes(plans.head),
                  .workspace = std::max(plans.step.workspace_bytes, plans.head.workspace_bytes)};
  const size_t budget = budget_of(layout, options);
  CAIRN_TRY(memory_, memory::Memory::create(
                         std::move(layout),
                         {.budget_bytes = budget, .context_tokens_max = options.context_tokens},
                         backend.memory()));
  cache_.emplace(memory_.get());
  CAIRN_TRY(runner_, Runner::create(std::move(plans), memory_->layout(), &backend));
  stepper_.emplace(memory_.get(), &*cache_, runner_.get());
  return Ok{};
}

void Predictor::prepare(std::span<float> row, Origin origin) const {
  const Vector& gain = origin == Origin::model ? input_.model_gain : input_.own_gain;
  if (!gain.exists()) return;
  double sum = 0;
  for (const float value : row) sum += double(value) * double(value);
  const double mean = sum / double(row.size());
  const double factor = 1.0 / std::sqrt(mean + double(input_.norm_epsilon));
  for (size_t i = 0; i < row.size(); ++i) {
    row[i] = float(double(row[i]) * factor) * gain.values[i];
  }
}

}  // namespace cairn
