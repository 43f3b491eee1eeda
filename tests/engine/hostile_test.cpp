// Files whose metadata says what it should not: the golden models with numbers changed to 0, 1,
// huge and odd ones, with fields lost and fields added. Each must be refused with an error, or load
// and compute. Once with the file's own tensors, once with tensors made to fit whatever the changed
// numbers ask for, so that what the shapes do not catch is reached too.
// More of it: --gtest_shuffle --gtest_repeat=50 --gtest_random_seed=1 (each repeat another seed).
#include <gtest/gtest.h>

#include <iterator>
#include <random>

#include "base/log.h"
#include "gguf/hyperparameters.h"
#include "gguf/writer.h"
#include "tests/models/embedding_case.h"

namespace cairn::test::hostile_test {
namespace {

constexpr uint32_t kF32 = 0;  // The format's number of it.

struct Shape {
  std::string name;
  std::vector<int64_t> dims;
};

// Notes what a model asks for: all that it needs, and of the rest some. The model sees what is
// noted as there, so that it asks for no other tensor in its place.
class Recorder : public ParameterVisitor {
 public:
  explicit Recorder(std::mt19937_64* random) : random_(random) {}

  Status matrix(std::string_view name, Weight& weight, std::span<const int64_t> shape,
                Need need) override {
    if (!note(name, shape, need)) return Ok{};
    const std::vector<int64_t>& dims = shapes.back().dims;
    weight.type = quant::find(kF32);
    weight.cols = int32_t(dims[0]);
    weight.rows = int32_t(dims[1]);
    return Ok{};
  }
  Status vector(std::string_view name, Vector& vector, std::span<const int64_t> shape,
                Need need) override {
    if (note(name, shape, need)) vector.values = std::span(&kOne, 1);
    return Ok{};
  }

  std::vector<Shape> shapes;

 private:
  static constexpr float kOne = 1.0f;

  bool note(std::string_view name, std::span<const int64_t> shape, Need need) {
    if (need == Need::optional && (*random_)() % 2 == 0) return false;
    Shape noted{.name = std::string(name), .dims = {}};
    for (const int64_t size : shape) noted.dims.push_back(size < 0 ? -size : size);  // usual()
    shapes.push_back(std::move(noted));
    return true;
  }

  std::mt19937_64* random_;
};

class Hostile : public ::testing::Test {
 protected:
  // random_seed() is 0 unless the tests are shuffled.
  Hostile() : random_(uint64_t(::testing::UnitTest::GetInstance()->random_seed())) {
    for (const std::string& name : supported_cases()) {
      files_.push_back(gguf::File::open(golden_path(name, ".gguf")).value());
    }
    for (const std::string& name : embedding_cases()) {
      files_.push_back(gguf::File::open(embedding_path(name, ".gguf")).value());
    }
    log::set_level(log::Level::error);  // Of tensors that nobody reads there is much to say.
  }
  ~Hostile() override { log::set_level(log::Level::info); }

  size_t below(size_t limit) { return size_t(random_() % limit); }

  int64_t odd_count() {
    constexpr int64_t kCounts[] = {0,  0,  1,   1,   2,   3,    4,     5,          6,  7,
                                   8,  12, 16,  24,  31,  32,   33,    48,         64, 65,
                                   96, 98, 127, 128, 255, 1024, 65536, 0x7fffffff, -1, 0xffffffff};
    return kCounts[below(std::size(kCounts))];
  }

  float odd_real() {
    constexpr float kReals[] = {0.0f, -0.0f, 1.0f,  -1.0f, 1e-30f,        1e30f,
                                0.5f, 2.0f,  -3.0f, 1e6f,  float(1 << 24)};
    return below(20) == 0 ? std::nanf("") : kReals[below(std::size(kReals))];
  }

  void add_changed(gguf::Writer& writer, const gguf::Field& field) {
    if (field.value.is_array()) {
      if (field.value.element == gguf::ValueType::string) return writer.add(field.key, field.value);
      return add_array(writer, field);
    }
    if (gguf::is_integer(field.value.type)) return writer.add(field.key, odd_count());
    if (gguf::real_in(field.value)) return writer.add(field.key, odd_real());
    if (const auto flag = gguf::boolean_in(field.value)) return writer.add(field.key, !*flag);
    constexpr const char* kTexts[] = {"none", "linear", "yarn", "longrope", ""};
    writer.add(field.key, kTexts[below(std::size(kTexts))]);
  }

  void add_array(gguf::Writer& writer, const gguf::Field& field) {
    if (below(3) == 0) return writer.add(field.key, odd_count());
    if (field.value.element == gguf::ValueType::f32) {
      const gguf::Reals old(field.value);
      std::vector<float> reals;
      for (size_t index = 0; index < old.size(); ++index) reals.push_back(old[index]);
      if (!reals.empty()) reals[below(reals.size())] = odd_real();
      return writer.add_array<float>(field.key, reals);
    }
    const gguf::Integers old(field.value);
    std::vector<int64_t> counts;
    for (size_t index = 0; index < old.size(); ++index) counts.push_back(old[index]);
    if (!counts.empty()) counts[below(counts.size())] = odd_count();
    if (below(8) == 0) counts.push_back(odd_count());
    writer.add_array<int64_t>(field.key, counts);
  }

  // A field that the file does not have, by a name that models ask for.
  void add_new(gguf::Writer& writer, const gguf::File& file) {
    const std::string prefix = file.metadata().value().architecture() + ".";
    const auto counts = gguf::count_ranges();
    const auto reals = gguf::real_ranges();
    const size_t index = below(counts.size() + reals.size());
    const std::string key =
        prefix +
        std::string(index < counts.size() ? counts[index].name : reals[index - counts.size()].name);
    if (file.fields().find(key) != nullptr) return;
    if (index < counts.size()) {
      writer.add(key, odd_count());
    } else {
      writer.add(key, odd_real());
    }
  }

  gguf::Writer changed_fields(const gguf::File& file) {
    const std::string prefix = file.metadata().value().architecture() + ".";
    std::vector<std::string_view> keys;
    for (const gguf::Field& field : file.fields().all()) {
      if (field.key.starts_with(prefix)) keys.push_back(field.key);
    }
    std::vector<std::string_view> changed;
    const size_t change_count = 1 + below(3);
    for (size_t change = 0; change < change_count; ++change) {
      changed.push_back(keys[below(keys.size())]);
    }
    gguf::Writer writer;
    for (const gguf::Field& field : file.fields().all()) {
      if (std::find(changed.begin(), changed.end(), field.key) == changed.end()) {
        writer.add(field.key, field.value);
      } else if (below(8) != 0) {  // Otherwise it is lost.
        add_changed(writer, field);
      }
    }
    if (below(4) == 0) add_new(writer, file);
    return writer;
  }

  // Refused, or three tokens are read in two steps. True where it loaded.
  bool loads(const std::vector<std::byte>& bytes) {
    Result<gguf::File> file = gguf::File::from_bytes(bytes, "model");
    if (!file) return false;
    EngineOptions options = golden_options(KvType::f16);
    options.thread_count = 1;
    options.row_count_max = 4;
    if (below(4) == 0) options.backend = "reference";
    // Of encoders nothing else is to be had.
    auto meta = file->metadata();
    const bool makes_vectors = meta && (meta->has("attention.causal") || meta->has("pooling_type"));
    if (makes_vectors || below(8) == 0) options.pooling = Pooling(below(5));
    auto engine = Engine::load(std::move(*file), options);
    if (!engine) {
      EXPECT_FALSE(engine.error().message.empty());
      return false;
    }
    if (options.pooling) return embeds(**engine);
    memory::Sequence sequence = (*engine)->memory().new_sequence();
    const int32_t last = (*engine)->size().vocabulary_count - 1;
    const std::vector<Token> tokens = {Token(0), Token(last), Token(last / 2)};
    const bool is_room = bool((*engine)->memory().begin(sequence, {.tokens = tokens}));
    if (!is_room || (*engine)->options().context_tokens < 3) return true;
    append(**engine, sequence, std::span(tokens).first(2));
    append(**engine, sequence, std::span(tokens).last(1));
    return true;
  }

  // Vectors, or an error: their numbers are not always finite.
  bool embeds(Engine& engine) {
    const Token last = Token(engine.size().vocabulary_count - 1);
    const std::vector<std::vector<Token>> texts = {{Token(0), last}, {last}};
    const auto made = Embedder(&engine, {}).embed(texts);
    EXPECT_TRUE(made || !made.error().message.empty());
    return true;
  }

  // The file's own tensors behind the writer's fields.
  static std::vector<std::byte> with_own_tensors(gguf::Writer writer, const gguf::File& file) {
    for (const gguf::Tensor& tensor : file.tensors()) {
      writer.declare(tensor.name, {tensor.dims.data(), size_t(tensor.dim_count)}, tensor.type_id);
    }
    std::vector<std::byte> bytes;
    auto stream = writer.open_memory(bytes);
    if (!stream) return {};
    for (const gguf::Tensor& tensor : file.tensors()) EXPECT_TRUE(stream->append(tensor.bytes));
    EXPECT_TRUE(stream->finish());
    return bytes;
  }

  // Tensors of the shapes that a model of these fields asks for, all of f32. Empty where it asks
  // for none, or for more than a test should make.
  std::vector<std::byte> with_fitting_tensors(gguf::Writer writer) {
    constexpr int64_t kFloatsMax = 1 << 20;
    std::vector<std::byte> head;
    auto stream = writer.open_memory(head);
    if (!stream || !stream->finish()) return {};
    auto file = gguf::File::from_bytes(head, "fields");
    if (!file) return {};
    auto meta = file->metadata();
    if (!meta) return {};
    const auto* architecture = models::find_architecture(meta->architecture()).value();
    auto model = architecture->create(*meta);
    if (!model) return {};
    Recorder recorder(&random_);
    EXPECT_TRUE((*model)->visit_parameters(recorder));
    int64_t all_count = 0;
    for (const Shape& shape : recorder.shapes) {
      int64_t count = 1;
      for (const int64_t size : shape.dims) {
        EXPECT_GE(size, 0) << shape.name;
        if (size <= 0 || size > kFloatsMax) return {};
        count *= size;
        if (count > kFloatsMax) return {};
      }
      all_count += count;
      if (all_count > kFloatsMax) return {};
      writer.declare(shape.name, shape.dims, kF32);
    }
    std::vector<std::byte> bytes;
    auto whole = writer.open_memory(bytes);
    if (!whole) return {};
    for (const Shape& shape : recorder.shapes) {
      int64_t count = 1;
      for (const int64_t size : shape.dims) count *= size;
      std::vector<float> values(static_cast<size_t>(count));
      for (float& value : values) value = float(int64_t(below(17)) - 8) / 64.0f;
      EXPECT_TRUE(whole->append(std::as_bytes(std::span(values))));
    }
    EXPECT_TRUE(whole->finish());
    return bytes;
  }

  std::mt19937_64 random_;
  std::vector<gguf::File> files_;
};

TEST_F(Hostile, ChangedNumbersAreRefusedOrCompute) {
  int refused_count = 0, loaded_count = 0;
  for (int round = 0; round < 4; ++round) {
    for (const gguf::File& file : files_) {
      const std::vector<std::byte> bytes = with_own_tensors(changed_fields(file), file);
      ++(!bytes.empty() && loads(bytes) ? loaded_count : refused_count);
    }
  }
  EXPECT_GT(refused_count, 0);
  EXPECT_GT(loaded_count, 0);
}

TEST_F(Hostile, ChangedNumbersWithTensorsToMatchAreRefusedOrCompute) {
  int refused_count = 0, loaded_count = 0;
  for (int round = 0; round < 8; ++round) {
    for (const gguf::File& file : files_) {
      const std::vector<std::byte> bytes = with_fitting_tensors(changed_fields(file));
      ++(!bytes.empty() && loads(bytes) ? loaded_count : refused_count);
    }
  }
  EXPECT_GT(refused_count, 0);
  EXPECT_GT(loaded_count, 0);
}

// Nothing that a model computes with may be 0 because the metadata say so: each count of each model
// in turn, also with the matrices in one that do without some of their parts.
TEST_F(Hostile, EveryCountAsZeroAndAsTheLargestIsRefusedOrComputes) {
  int refused_count = 0, loaded_count = 0;
  for (const gguf::File& file : files_) {
    const std::string prefix = file.metadata().value().architecture() + ".";
    for (const gguf::Field& changed : file.fields().all()) {
      if (!changed.key.starts_with(prefix) || !gguf::is_integer(changed.value.type)) continue;
      for (const int64_t count : {0, 0x7fffffff}) {
        gguf::Writer writer;
        for (const gguf::Field& field : file.fields().all()) {
          if (field.key != changed.key) {
            writer.add(field.key, field.value);
          } else {
            writer.add(field.key, count);
          }
        }
        const std::vector<std::byte> bytes = with_fitting_tensors(std::move(writer));
        ++(!bytes.empty() && loads(bytes) ? loaded_count : refused_count);
      }
    }
  }
  EXPECT_GT(refused_count, 0);
  EXPECT_GT(loaded_count, 0);
}

}  // namespace
}  // namespace cairn::test::hostile_test
