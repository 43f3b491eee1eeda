// Loading a draft model beside its target.
#include "engine/drafts/draft_model.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/models/golden_model.h"
#include "tests/scratch_folder.h"
#include "tests/twin_vocabulary.h"

namespace cairn::test::draft_model_test {
namespace {

std::string nano() {
  return std::string(CAIRN_SOURCE) + "/assets/nano.gguf";
}

Result<std::unique_ptr<DraftModel>> load(const std::string& path, Engine& target) {
  CAIRN_TRY(gguf::File file, gguf::File::open(path));
  return DraftModel::load(std::move(file), target);
}

TEST(DraftModel, ComputesOnTheTargetsThreads) {
  const auto target = load_engine(nano(), golden_options(KvType::q8_0));
  auto drafts = load(nano(), *target);
  ASSERT_TRUE(drafts) << drafts.error().message;
  Engine& engine = (*drafts)->engine();
  EXPECT_EQ(&engine.threads(), &target->threads());
  EXPECT_EQ(engine.options().thread_count, 2);
  EXPECT_EQ(engine.options().key_type, KvType::q8_0);
  EXPECT_EQ(engine.options().memory_budget, target->options().memory_budget / 8);
  EXPECT_GT((*drafts)->window_tokens(), 64);
}

TEST(DraftModel, DraftsByTextWhereTokensAreOthers) {
  const auto target = load_engine(nano(), golden_options(KvType::f16));
  auto same = load(nano(), *target);
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_FALSE((*same)->drafts_by_text());
  // Fewer ones, and as many in another order.
  const ScratchFolder folder;
  const std::string twin = folder.file("twin.gguf");
  write_twin(nano(), twin, 0);
  for (const std::string& path : {golden_path("llama", ".gguf"), twin}) {
    auto other = load(path, *target);
    ASSERT_TRUE(other) << other.error().message;
    EXPECT_TRUE((*other)->drafts_by_text()) << path;
    EXPECT_EQ((*other)->target_tokenizer(), target->tokenizer());
  }
}

// A model without a vocabulary has no text.
TEST(DraftModel, NeedsAVocabularyOnBothSides) {
  const ScratchFolder folder;
  const std::string path = folder.file("bare.gguf");
  {
    const gguf::File file = gguf::File::open(golden_path("llama", ".gguf")).value();
    gguf::Writer writer;
    for (const gguf::Field& field : file.fields().all()) {
      if (!field.key.starts_with("tokenizer.")) writer.add(field.key, field.value);
    }
    for (const gguf::Tensor& tensor : file.tensors()) {
      writer.declare(tensor.name, std::span(tensor.dims).first(size_t(tensor.dim_count)),
                     tensor.type_id);
    }
    gguf::TensorStream stream = writer.open_file(path).value();
    for (const gguf::Tensor& tensor : file.tensors()) ASSERT_TRUE(stream.append(tensor.bytes));
    ASSERT_TRUE(stream.finish());
  }
  const auto target = load_engine(golden_path("llama", ".gguf"), golden_options(KvType::f16));
  const auto refused = load(path, *target);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(refused.error().message.find("expected a vocabulary in both files, found none in "),
            std::string::npos)
      << refused.error().message;
  const auto bare = load_engine(path, golden_options(KvType::f16));
  auto both = load(path, *bare);
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_FALSE((*both)->drafts_by_text());
}

// One text by an engine of its own or beside another, and by that other one between its steps.
std::vector<float> logits_of(Engine& engine, Engine* other) {
  const Golden golden = read_golden("mixtral");
  memory::Sequence sequence = engine.memory().new_sequence();
  std::vector<float> all;
  for (const Token token : golden.sequences.front()) {
    const std::vector<float> logits = append(engine, sequence, std::span(&token, 1));
    all.insert(all.end(), logits.begin(), logits.end());
    if (other == nullptr) continue;
    memory::Sequence others = other->memory().new_sequence();
    append(*other, others, golden.sequences.front());
  }
  return all;
}

bool same_bits(const std::vector<float>& first, const std::vector<float>& second) {
  return first.size() == second.size() &&
         std::memcmp(first.data(), second.data(), first.size() * sizeof(float)) == 0;
}

TEST(DraftModel, OfTheTargetItselfTakesNoWeights) {
  const ScratchFolder folder;
  const std::string path = golden_path("mixtral", ".gguf");
  const std::vector<models::ProgramChoice> programs = {
      {.exit_layer = 2}, {.skipped_layers = {1}}, {.expert_count = 1}, {}};
  for (const std::string& cache : {std::string(), folder.path().string()}) {
    for (const bool is_unpacked : {false, true}) {
      if (is_unpacked && !cache.empty()) continue;
      EngineOptions options = golden_options(KvType::f16);
      options.pack_cache = cache;
      options.is_unpacked = is_unpacked;
      const auto target = load_engine(path, options);
      const std::vector<float> expected = logits_of(*target, nullptr);
      for (const models::ProgramChoice& program : programs) {
        auto self = DraftModel::load_self(
            *target, {.choice = {.program = program}, .pack_cache = options.pack_cache});
        ASSERT_TRUE(self) << self.error().message;
        Engine& thin = (*self)->engine();
        EXPECT_EQ(thin.fixed_bytes().weights, 0u);
        EXPECT_EQ(&thin.file(), &target->file());
        EXPECT_EQ(thin.tokenizer(), target->tokenizer());
        EXPECT_EQ(thin.options().isa, target->options().isa);
        options.program = program;
        EXPECT_TRUE(same_bits(logits_of(thin, target.get()),
                              logits_of(*load_engine(path, options), nullptr)));
        EXPECT_TRUE(same_bits(logits_of(*target, &thin), expected));
      }
      // Plans that are gone leave nothing to those which come to lie where they were.
      EXPECT_TRUE(same_bits(logits_of(*target, nullptr), expected));
    }
  }
}

// What the target leaves out it packs for the draft model alone.
TEST(DraftModel, MayRunWhatTheTargetLeavesOut) {
  const std::string path = golden_path("mixtral", ".gguf");
  EngineOptions options = golden_options(KvType::f16);
  const std::vector<float> expected = logits_of(*load_engine(path, options), nullptr);
  options.program.skipped_layers = {1};
  const auto target = load_engine(path, options);
  const std::vector<float> thin = logits_of(*target, nullptr);
  for (int32_t round = 0; round < 2; ++round) {
    auto self = DraftModel::load_self(*target).value();
    const size_t weights = self->engine().fixed_bytes().weights;
    // Once it is packed it stays so.
    EXPECT_EQ(weights > 0, round == 0);
    EXPECT_LT(weights, target->fixed_bytes().weights);
    EXPECT_TRUE(same_bits(logits_of(self->engine(), target.get()), expected));
    EXPECT_TRUE(same_bits(logits_of(*target, &self->engine()), thin));
  }
}

}  // namespace
}  // namespace cairn::test::draft_model_test
