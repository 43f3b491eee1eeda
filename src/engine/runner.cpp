// Filling in a step and handing it to the backend.
#include "engine/runner.h"

#include <algorithm>
#include <array>
#include <utility>

namespace cairn {

namespace {

// Of an op in the form that a backend executes: its kernel, its place in a round, and the ends of
// its tasks.
constexpr size_t kPreparedBytes = 256;

// What was reserved while it was recorded is not counted.
void shrink(Plan& plan) {
  plan.ops.shrink_to_fit();
  plan.stages.shrink_to_fit();
  plan.fused_ops.shrink_to_fit();
  plan.pieces.shrink_to_fit();
}

}  // namespace

Result<std::unique_ptr<Runner>> Runner::create(Plans plans, const memory::Layout& layout,
                                               Backend* backend) {
  std::unique_ptr<Runner> runner(new Runner(layout, backend));
  CAIRN_TRY(runner->add(memory::Variant::plain, std::move(plans)));
  runner->reserve_rows();
  const std::vector<Op>& ops = runner->plans().step.ops;
  runner->needs_whole_texts_ = std::any_of(ops.begin(), ops.end(), [](const Op& op) {
    const auto* attend = std::get_if<op::Attend>(&op);
    return attend != nullptr && !attend->is_causal;
  });
  for (const Op& op : ops) {
    if (const auto* given = std::get_if<op::Given>(&op)) runner->given_width_ = given->out.width;
  }
  runner->given_.reserve(size_t(runner->row_count_max()) * size_t(runner->given_width_));
  return runner;
}

// The backend may serve other engines, which get plans at these addresses.
Runner::~Runner() {
  for (const auto& entry : plans_) {
    const Plans& old = entry->plans;
    for (const Plan* plan : {&old.step, &old.head, &old.replay}) backend_->release(*plan);
  }
}

Status Runner::add(memory::Variant variant, Plans plans) {
  forget_outputs();
  for (Plan* plan : {&plans.step, &plans.head, &plans.replay}) shrink(*plan);
  auto entry = std::make_unique<const VariantPlans>(VariantPlans{variant, std::move(plans)});
  const std::array all = {&entry->plans.step, &entry->plans.head, &entry->plans.replay};
  for (const Plan* plan : all) {
    if (!workspace_ || plan->workspace_bytes > workspace_bytes_) {
      CAIRN_TRY(workspace_, backend_->memory().allocate(plan->workspace_bytes));
      workspace_bytes_ = plan->workspace_bytes;
    }
  }
  for (const Plan* plan : all) {
    Status prepared = backend_->prepare(*plan);
    if (prepared) continue;
    for (const Plan* ready : all) backend_->release(*ready);
    return prepared;
  }
  plans_.push_back(std::move(entry));
  forget_outputs();
  return Ok{};
}

void Runner::drop(memory::Variant variant) {
  CHECK(variant != memory::Variant::plain);
  const Plans& old = plans(variant);
  for (const Plan* plan : {&old.step, &old.head, &old.replay}) backend_->release(*plan);
  std::erase_if(plans_, [&](const auto& entry) { return entry->variant == variant; });
  forget_outputs();
}

const Plans& Runner::plans(memory::Variant variant) const {
  for (const auto& entry : plans_) {
    if (entry->variant.computation == variant.computation) return entry->plans;
  }
  CHECK(false);
  return plans_.front()->plans;
}

size_t recorded_bytes(const Plan& plan) {
  return std::span(plan.ops).size_bytes() + std::span(plan.stages).size_bytes() +
         std::span(plan.fused_ops).size_bytes() + std::span(plan.pieces).size_bytes();
}

size_t plan_bytes(const Plans& plans) {
  size_t bytes = 0;
  for (const Plan* plan : {&plans.step, &plans.head, &plans.replay}) {
    bytes += recorded_bytes(*plan) + plan->ops.size() * kPreparedBytes;
  }
  for (const std::vector<double>& constants : plans.constants) {
    bytes += std::span(constants).size_bytes();
  }
  return bytes;
}

size_t Runner::plan_bytes() const {
  size_t bytes = 0;
  for (const auto& entry : plans_) bytes += cairn::plan_bytes(entry->plans);
  return bytes;
}

void Runner::forget_outputs() {
  clear();
  ++run_count_;
  last_plan_ = plans_.empty() ? nullptr : &plans().step;
}

void Runner::reserve_rows() {
  const size_t row_count = size_t(row_count_max());
  tokens_.reserve(row_count);
  no_tokens_.reserve(row_count);
  positions_.reserve(row_count);
  slice_of_row_.reserve(row_count);
  slices_.reserve(row_count);
  output_rows_.reserve(size_t(output_count_max()));
  replayed_pieces_.reserve(row_count);
}

void Runner::add_slice(const Slice& slice, std::span<const Token> tokens) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  for (int32_t row = 0; row < slice.row_count; ++row) {
    positions_.push_back(slice.first_position + row);
    slice_of_row_.push_back(int32_t(slices_.size()));
  }
  slices_.push_back(slice);
}

bool Runner::run(std::span<const BatchPart> parts, std::optional<FunctionRef<bool()>> is_given_up) {
  clear();
  CHECK(!parts.empty());
  const memory::Variant variant = parts.front().transaction->variant();
  for (const BatchPart& part : parts) {
    CHECK(part.transaction->variant().computation == variant.computation);
    const int32_t first_row = int32_t(tokens_.size());
    for (const int32_t output : part.outputs) output_rows_.push_back(first_row + output);
    Slice slice = part.transaction->slice(first_row);
    slice.is_answer = part.is_answer;
    CHECK(slice.first_position == 0 || !needs_whole_texts_);
    add_slice(slice, part.transaction->tokens());
    CHECK(part.given.size() == part.transaction->tokens().size() * size_t(given_width_));
    given_.insert(given_.end(), part.given.begin(), part.given.end());
  }
  CHECK(int32_t(tokens_.size()) <= row_count_max());
  CHECK(int32_t(output_rows_.size()) <= output_count_max());
  last_plan_ = &plans(variant).step;
  return execute(*last_plan_, is_given_up);
}

void Runner::keep_hidden(memory::Transaction& transaction, int32_t output) {
  backend_->memory().copy(transaction.hidden(), output_row(last_plan_->hidden, output));
}

void Runner::restore_logits(DeviceBytes hidden, memory::Variant variant) {
  clear();
  output_rows_.push_back(0);
  last_plan_ = &plans(variant).head;
  backend_->memory().copy(output_row(last_plan_->hidden, 0), hidden);
  execute(*last_plan_);
}

void Runner::replay(std::span<memory::Replay> replays) {
  replayed_pieces_.assign(replays.size(), 0);
  while (add_pieces(replays)) execute(*last_plan_);
}

// The next piece of each replay that has one, as far as there are rows; those of one computation.
// False when all have been computed.
bool Runner::add_pieces(std::span<memory::Replay> replays) {
  clear();
  const memory::Replay* first = nullptr;
  int32_t row_count = 0;
  for (size_t i = 0; i < replays.size(); ++i) {
    memory::Replay& replay = replays[i];
    int32_t& piece = replayed_pieces_[i];
    if (piece == replay.piece_count()) continue;
    const bool fits =
        first == nullptr || replay.variant().computation == first->variant().computation;
    if (!fits) continue;
    const int32_t piece_rows = replay.piece_row_count(piece);
    if (first != nullptr && row_count + piece_rows > replay_rows_max()) continue;
    CHECK(piece_rows <= replay_rows_max());
    no_tokens_.resize(size_t(piece_rows));  // Within what was reserved.
    add_slice(replay.slice(piece++, row_count), no_tokens_);
    row_count += piece_rows;
    if (first == nullptr) first = &replay;
  }
  if (first != nullptr) last_plan_ = &plans(first->variant()).replay;
  return first != nullptr;
}

void Runner::clear() {
  tokens_.clear();
  positions_.clear();
  given_.clear();
  slice_of_row_.clear();
  slices_.clear();
  output_rows_.clear();
}

bool Runner::execute(const Plan& plan, std::optional<FunctionRef<bool()>> is_given_up) {
  ++run_count_;
  return backend_->execute(plan, {.tokens = tokens_,
                                  .positions = positions_,
                                  .given = given_,
                                  .slice_of_row = slice_of_row_,
                                  .slices = slices_,
                                  .output_rows = output_rows_,
                                  .kv_planes = layout_.kv_planes,
                                  .state_tensors = layout_.state_tensors,
                                  .log_planes = layout_.log_planes,
                                  .workspace = workspace_->data(),
                                  .is_given_up = is_given_up});
}

DeviceBytes Runner::output_row(const Rows& rows, int32_t output) const {
  CHECK(output >= 0 && output < int32_t(output_rows_.size()));
  const size_t first = size_t(rows.offset) + size_t(output) * size_t(rows.stride);
  return {workspace_->data() + first * sizeof(float), size_t(rows.width) * sizeof(float)};
}

std::span<const float> Runner::seen_by_host(const Rows& rows, int32_t output) const {
  const std::span<const std::byte> row = backend_->memory().view(output_row(rows, output));
  return {reinterpret_cast<const float*>(row.data()), row.size() / sizeof(float)};
}

std::span<const float> Runner::hidden(int32_t output) const {
  return seen_by_host(last_plan_->hidden, output);
}

std::span<const float> Runner::logits(int32_t output) const {
  return seen_by_host(last_plan_->logits, output);
}

}  // namespace cairn
