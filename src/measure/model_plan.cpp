// An engine is loaded up to where it has counted, and then given up; a conversation is had without
// computing it, in memory that is nowhere.
#include "measure/model_plan.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/arena.h"
#include "engine/engine.h"
#include "engine/pooling.h"
#include "models/model.h"

namespace cairn::measure {

namespace {

// Of a conversation: its last message and the answer to it, as in memory_figures.h.
constexpr int32_t kLastMessage = 600, kLastAnswer = 24;

// Addresses that nobody touches: a memory hands out blocks, and only who computes looks into them.
class Nowhere : public DeviceMemory {
 public:
  Result<std::unique_ptr<Buffer>> allocate(size_t bytes) override { return reserve(bytes); }
  Result<std::unique_ptr<Buffer>> reserve(size_t bytes) override {
    const size_t whole = (bytes + slab_bytes() - 1) / slab_bytes() * slab_bytes();
    CAIRN_TRY(Arena addresses, Arena::reserve_addresses(whole));
    return std::unique_ptr<Buffer>(std::make_unique<Addresses>(std::move(addresses)));
  }
  size_t slab_bytes() const override { return Arena::kHugePageBytes; }
  size_t unit_bytes() const override { return 4096; }
  void copy(DeviceBytes, DeviceBytes) override {}
  void fill(DeviceBytes, std::byte) override {}
  std::span<const std::byte> view(DeviceBytes) override { return {}; }

 private:
  class Addresses : public Buffer {
   public:
    explicit Addresses(Arena arena)
        : Buffer({arena.data(), arena.size()}), arena_(std::move(arena)) {}
    bool commit(size_t, size_t) override { return true; }
    void decommit(size_t, size_t) override {}
    void discard(size_t, size_t) override {}

   private:
    Arena arena_;
  };
};

// More than a conversation of so many tokens holds: room is no question here.
size_t ample_bytes(const memory::Layout& layout, int32_t tokens) {
  constexpr size_t kMoreBlocks = 64;
  size_t bytes = 0;
  for (const memory::GroupSpec& group : layout.groups) {
    const size_t pages = group.has_pages() ? size_t(group.page_count(tokens)) : 0;
    bytes += (pages + kMoreBlocks) * group.block_bytes;
  }
  return bytes;
}

Status add_tokens(memory::Memory& memory, memory::Sequence& sequence, int32_t count) {
  const std::vector<Token> tokens(size_t(count), Token(0));
  CAIRN_TRY(memory::Transaction transaction,
            memory.begin(sequence, {.tokens = tokens, .keeps_hidden = true}));
  transaction.commit(count);
  return Ok{};
}

// The bytes of a conversation, with those of the step that is under way at its end.
Status have_conversation(memory::Memory& memory, int32_t step_rows, ModelPlan& plan) {
  const int32_t length = plan.context_tokens;
  const int32_t answer = std::min(kLastAnswer, length / 4);
  const int32_t message = std::min(kLastMessage, length / 4);
  memory::Sequence sequence = memory.new_sequence();
  const auto read_to = [&](int32_t end) -> Status {
    while (sequence.length() < end) {
      CAIRN_TRY(add_tokens(memory, sequence, std::min(step_rows, end - sequence.length())));
    }
    return Ok{};
  };
  CAIRN_TRY(read_to(length - message - answer));
  CAIRN_TRY(memory.keep_anchor(sequence, memory::AnchorKind::message_start));
  memory.protect_from(sequence, sequence.length());
  CAIRN_TRY(read_to(length - answer));
  while (sequence.length() + 1 < length) CAIRN_TRY(add_tokens(memory, sequence, 1));
  const std::vector<Token> last(1, Token(0));
  CAIRN_TRY(const memory::Transaction under_way,
            memory.begin(sequence, {.tokens = last, .keeps_hidden = true}));
  plan.conversation_bytes = memory.usage().used_bytes();
  plan.groups = memory.usage(sequence);
  return Ok{};
}

Status plan_memory(const Counted& counted, const EngineOptions& options, ModelPlan& plan) {
  const int32_t step_rows = counted.plans.step.row_count_max;
  if (!plan.makes_text) return Ok{};
  Nowhere nowhere;
  CAIRN_TRY(
      const std::unique_ptr<memory::Memory> memory,
      memory::Memory::create(counted.layout,
                             {.budget_bytes = ample_bytes(counted.layout, plan.context_tokens),
                              .context_tokens_max = plan.context_tokens,
                              .log_step = options.log_step,
                              .log_tokens_max = options.log_tokens_max},
                             nowhere));
  for (const int32_t group : {counted.layout.recurrent_group, counted.layout.hidden_group}) {
    if (group >= 0) plan.place_bytes += counted.layout.groups[size_t(group)].block_bytes;
  }
  return have_conversation(*memory, step_rows, plan);
}

void plan_speed(const Counted& counted, int32_t conversations, ModelPlan& plan) {
  const auto costs = [&](const StepShape& shape) {
    return costs_by_type(counted.plans.step, counted.layout, shape);
  };
  plan.prompt_rows = counted.plans.step.row_count_max;
  plan.prompt = costs({.rows = plan.prompt_rows, .outputs = 1});
  if (!plan.makes_text) return;
  const int32_t depth = plan.context_tokens - 1;
  plan.decode_one = costs({.depth = depth});
  plan.decode_all = costs({.sequences = conversations, .depth = depth, .outputs = conversations});
}

// What the file says of pooling; of a model that only makes vectors, some kind: all take the same.
Result<std::optional<Pooling>> pooling_for(const gguf::File& file) {
  CAIRN_TRY(const std::optional<Pooling> said, pooling_of(file));
  if (said) return said;
  CAIRN_TRY(const gguf::Metadata meta, file.metadata());
  CAIRN_TRY(const models::Architecture* architecture,
            models::find_architecture(meta.architecture()));
  CAIRN_TRY(const std::unique_ptr<models::Model> model, architecture->create(meta));
  return model->makes_text() ? said : Pooling::none;
}

}  // namespace

Result<ModelPlan> plan_model(gguf::File file, const PlanQuestion& question) {
  ModelPlan plan;
  EngineOptions options = question.engine;
  CAIRN_TRY(options.pooling, pooling_for(file));
  options.memory_room = MemoryRoom{};
  options.memory_budget = 1;  // Nothing is taken of it.
  Status counting = Ok{};
  bool is_counted = false;
  options.on_counted = [&](const Counted& counted) -> Result<size_t> {
    is_counted = true;
    plan.fixed = counted.fixed;
    plan.context_tokens = counted.context_tokens;
    counting = plan_memory(counted, options, plan);
    plan_speed(counted, question.conversations, plan);
    return fail(ErrorCode::cancelled, "all is counted");
  };
  plan.makes_text = !options.pooling;
  Result<std::unique_ptr<Engine>> engine = Engine::load(std::move(file), options);
  if (!is_counted) return engine.error();
  CAIRN_TRY(std::move(counting));
  return plan;
}

}  // namespace cairn::measure
