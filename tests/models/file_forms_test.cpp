// One model in the forms that files have it in: queries, keys and values in one matrix or apart,
// and numbers beside matrices that their products are multiplied by. The same bits in all of them.
#include <fmt/format.h>

#include <cstring>

#include "base/half.h"
#include "engine/parameter_loader.h"
#include "gguf/writer.h"
#include "tests/models/golden_model.h"
#include "tests/small_pages.h"

namespace cairn::test::file_forms_test {
namespace {

struct NewTensor {
  std::string name;
  std::vector<int64_t> dims;
  uint32_t type_id;
  std::vector<std::byte> bytes;
};

std::vector<NewTensor> tensors_of(const gguf::File& file) {
  std::vector<NewTensor> tensors;
  for (const gguf::Tensor& tensor : file.tensors()) {
    NewTensor& added = tensors.emplace_back();
    added.name = tensor.name;
    added.dims.assign(tensor.dims.begin(), tensor.dims.end());
    added.type_id = tensor.type_id;
    added.bytes.assign(tensor.bytes.begin(), tensor.bytes.end());
  }
  return tensors;
}

NewTensor* find(std::vector<NewTensor>& tensors, const std::string& name) {
  for (NewTensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

// A copy of the file with other tensors.
std::vector<std::byte> copy_with(const gguf::File& file, const std::vector<NewTensor>& tensors) {
  gguf::Writer writer;
  for (const gguf::Field& field : file.fields().all()) writer.add(field.key, field.value);
  for (const NewTensor& tensor : tensors) writer.declare(tensor.name, tensor.dims, tensor.type_id);
  std::vector<std::byte> bytes;
  auto stream = writer.open_memory(bytes);
  EXPECT_TRUE(stream) << (stream ? "" : stream.error().message);
  if (!stream) return {};
  for (const NewTensor& tensor : tensors) EXPECT_TRUE(stream->append(tensor.bytes));
  EXPECT_TRUE(stream->finish());
  return bytes;
}

std::vector<float> logits_of(Result<gguf::File> file) {
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  if (!file) return {};
  auto engine = Engine::load(std::move(file).value(), golden_options(KvType::f16));
  EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
  if (!engine) return {};
  std::vector<Token> tokens;
  for (int32_t i = 0; i < 40; ++i) tokens.push_back(Token(3 + i * 37 % 290));
  memory::Sequence sequence = (*engine)->memory().new_sequence();
  return append(**engine, sequence, tokens);
}

std::vector<float> logits_of(const gguf::File& file, const std::vector<NewTensor>& tensors) {
  const std::vector<std::byte> bytes = copy_with(file, tensors);
  return logits_of(gguf::File::from_bytes(bytes, "model.gguf"));
}

// What the model multiplies with, in the file's order.
std::vector<std::string> names_of_matrices(const gguf::File& file) {
  const gguf::Metadata meta = file.metadata().value();
  const auto model = models::find_architecture(meta.architecture()).value()->create(meta).value();
  ParameterLoader loader(&file);
  EXPECT_TRUE(model->visit_parameters(loader));
  std::vector<std::string> names;
  for (const Weight* matrix : std::move(loader).take_matrices()) names.emplace_back(matrix->name);
  return names;
}

// The rows of the second and third behind those of the first. Whether all three were there.
bool join_rows(std::vector<NewTensor>& tensors, const std::string& layer,
               const std::string& ending) {
  NewTensor* first = find(tensors, layer + "attn_q" + ending);
  for (const char* name : {"attn_k", "attn_v"}) {
    const NewTensor* next = find(tensors, layer + name + ending);
    if (first == nullptr || next == nullptr || next->type_id != first->type_id) return false;
  }
  for (const char* name : {"attn_k", "attn_v"}) {
    const NewTensor* next = find(tensors, layer + name + ending);
    first->bytes.insert(first->bytes.end(), next->bytes.begin(), next->bytes.end());
    first->dims[ending == ".weight" ? 1 : 0] += next->dims[ending == ".weight" ? 1 : 0];
  }
  first->name = layer + "attn_qkv" + ending;
  std::erase_if(tensors, [&](const NewTensor& tensor) {
    return tensor.name == layer + "attn_k" + ending || tensor.name == layer + "attn_v" + ending;
  });
  return true;
}

// Twice as large, where that is exact; empty where it is not.
std::vector<std::byte> doubled(const NewTensor& tensor) {
  constexpr uint32_t kF32 = 0, kF16 = 1;
  std::vector<std::byte> bytes = tensor.bytes;
  if (tensor.type_id == kF32) {
    for (size_t at = 0; at < bytes.size(); at += sizeof(float)) {
      float value;
      std::memcpy(&value, bytes.data() + at, sizeof(value));
      value *= 2;
      std::memcpy(bytes.data() + at, &value, sizeof(value));
    }
    return bytes;
  }
  if (tensor.type_id != kF16) return {};
  for (size_t at = 0; at < bytes.size(); at += sizeof(Half)) {
    Half half;
    std::memcpy(&half, bytes.data() + at, sizeof(half));
    const float value = 2 * to_float(half);
    half = to_half(value);
    if (to_float(half) != value) return {};
    std::memcpy(bytes.data() + at, &half, sizeof(half));
  }
  return bytes;
}

bool is_looked_up(const std::string& matrix) {
  return matrix.ends_with("embd.weight") || matrix.ends_with("token_types.weight");
}

// Cases with layers that have the three apart, but for models where some layers read the keys and
// values of others and have queries alone.
std::vector<std::string> joinable_cases() {
  std::vector<std::string> names;
  for (const std::string& name : supported_cases()) {
    Result<gguf::File> file = gguf::File::open(golden_path(name, ".gguf"));
    const bool is_left_out = name.starts_with("gemma3n") || name.starts_with("gemma4");
    const auto tensors = file->tensors();
    const bool has_values = std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
      return tensor.name.ends_with(".attn_v.weight");
    });
    if (has_values && !is_left_out) names.push_back(name);
  }
  return names;
}

class JoinedProjections : public test::SmallPagesTest<std::string> {};
class ScalesBesideMatrices : public test::SmallPagesTest<std::string> {};

TEST_P(JoinedProjections, HaveTheSameBits) {
  Result<gguf::File> file = gguf::File::open(golden_path(GetParam(), ".gguf"));
  ASSERT_TRUE(file);
  std::vector<NewTensor> tensors = tensors_of(*file);
  for (int32_t layer = 0; layer < file->metadata()->count("block_count").value(); ++layer) {
    const std::string prefix = fmt::format("blk.{}.", layer);
    if (join_rows(tensors, prefix, ".weight")) join_rows(tensors, prefix, ".bias");
  }
  const std::vector<float> found = logits_of(*file, tensors);
  EXPECT_EQ(logits_of(std::move(file)), found);
}

TEST_P(ScalesBesideMatrices, MultiplyTheirProducts) {
  Result<gguf::File> file = gguf::File::open(golden_path(GetParam(), ".gguf"));
  ASSERT_TRUE(file);
  std::vector<NewTensor> tensors = tensors_of(*file);
  std::vector<NewTensor> scales;
  for (const std::string& matrix : names_of_matrices(*file)) {
    NewTensor& tensor = *find(tensors, matrix);
    const std::string name = matrix.substr(0, matrix.size() - 7) + ".scale";
    if (is_looked_up(matrix) || find(tensors, name) != nullptr) continue;
    std::vector<std::byte> twice = doubled(tensor);
    if (twice.empty()) continue;
    tensor.bytes = std::move(twice);
    const std::vector<float> halves(size_t(tensor.dims[2]), 0.5f);
    NewTensor& scale = scales.emplace_back(NewTensor{name, {tensor.dims[2]}, 0, {}});
    scale.bytes.resize(halves.size() * sizeof(float));
    std::memcpy(scale.bytes.data(), halves.data(), scale.bytes.size());
  }
  ASSERT_FALSE(scales.empty());
  tensors.insert(tensors.end(), scales.begin(), scales.end());
  const std::vector<float> found = logits_of(*file, tensors);
  EXPECT_EQ(logits_of(std::move(file)), found);
}

// Nothing multiplies with a row that is looked up, so a number beside the table would be for
// nothing.
TEST(ScalesBesideTables, AreRefused) {
  for (const char* name : {"token_embd", "position_embd"}) {
    Result<gguf::File> file = gguf::File::open(golden_path("gpt2", ".gguf"));
    ASSERT_TRUE(file);
    std::vector<NewTensor> tensors = tensors_of(*file);
    const float half = 0.5f;
    NewTensor& scale = tensors.emplace_back(NewTensor{name + std::string(".scale"), {1}, 0, {}});
    scale.bytes.resize(sizeof(half));
    std::memcpy(scale.bytes.data(), &half, sizeof(half));
    const std::vector<std::byte> bytes = copy_with(*file, tensors);
    const auto engine = Engine::load(gguf::File::from_bytes(bytes, "model.gguf").value(),
                                     golden_options(KvType::f16));
    ASSERT_FALSE(engine) << name;
    EXPECT_NE(engine.error().message.find(scale.name), std::string::npos) << engine.error().message;
  }
}

const auto name_of = [](const auto& each) { return each.param; };

INSTANTIATE_TEST_SUITE_P(Golden, JoinedProjections, ::testing::ValuesIn(joinable_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Golden, ScalesBesideMatrices, ::testing::ValuesIn(supported_cases()),
                         name_of);

}  // namespace
}  // namespace cairn::test::file_forms_test
