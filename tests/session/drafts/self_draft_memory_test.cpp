// What a model that is run thinner for drafts takes beside itself, as the system counts it: memory
// for what it reads, and no weights. A second file of the same weights shows that they would be
// seen.
#include <gtest/gtest.h>

#include "base/machine/machine_memory.h"
#include "engine/drafts/draft_model.h"
#include "synth/synth.h"
#include "tests/models/golden_model.h"
#include "tests/scratch_folder.h"

namespace cairn::session::self_draft_memory_test {
namespace {

TEST(SelfDraftMemory, HasNoWeights) {
  const test::ScratchFolder folder;
  synth::SynthOptions options{.shape = synth::default_shape("llama"),
                              .type = "Q8_0",
                              .seed = 3,
                              .out_path = folder.file("model.gguf"),
                              .thread_count = 2};
  options.shape.layers = 8;
  options.shape.width = 512;
  options.shape.mlp_width = 2048;
  options.shape.heads = 8;
  ASSERT_TRUE(synth::write_synthetic(options));
  const auto target =
      test::load_engine(options.out_path, {.thread_count = 2, .memory_budget = size_t(64) << 20});
  const size_t weights = target->fixed_bytes().weights;
  ASSERT_GT(weights, size_t(25) << 20);
  // Pages of the file come and go.
  const auto taken = [] { return int64_t(resident_bytes()) - int64_t(resident_file_bytes()); };
  if (resident_bytes() == 0) GTEST_SKIP() << "needs a system that says what is resident";

  const int64_t before = taken();
  const DraftModelOptions thin{.choice = {.program = {.exit_layer = 6}}};
  const auto self = DraftModel::load_self(*target, thin).value();
  const int64_t beside = taken() - before;
  EXPECT_EQ(self->engine().fixed_bytes().weights, 0u);
  EXPECT_LT(beside, int64_t(weights / 8));

  const auto second =
      DraftModel::load(gguf::File::open(options.out_path).value(), *target, thin).value();
  EXPECT_GT(second->engine().fixed_bytes().weights, weights / 2);
  EXPECT_GT(taken() - before - beside, int64_t(weights / 2));
}

}  // namespace
}  // namespace cairn::session::self_draft_memory_test
