// Scales of made-up weights: matrices keep the variance of what passes through them (1 / inputs),
// gains are near 1, the decays of recurrent layers span what trained ones span. So logits have a
// spread near 1 and nothing overflows, whatever the depth.
#include "synth/synth_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "base/random_stream.h"

namespace cairn::synth {

namespace {

constexpr int64_t kPoolRuns = 4096;
constexpr int64_t kRunWeightsMax = 256;
constexpr int64_t kChunkRuns = 4096;   // Filled from one random stream, by one thread.
constexpr int64_t kChunksAtOnce = 16;  // In the buffer between two writes.
constexpr uint64_t kPoolStream = uint64_t(1) << 63;  // Apart from all indices of tensors.

// What stands in for a type whose blocks are longer than a row can be cut into: those that
// llama.cpp's quantizer takes, so that a made-up model has the mixture of a real one of its width.
struct Substitute {
  std::string_view wanted, taken;
};
constexpr Substitute kSubstitutes[] = {
    {"Q2_K", "Q4_0"},      {"Q3_K", "Q4_0"},      {"Q4_K", "Q5_0"},     {"Q5_K", "Q5_1"},
    {"Q6_K", "Q8_0"},      {"TQ1_0", "Q4_0"},     {"TQ2_0", "Q4_0"},    {"IQ1_S", "IQ4_NL"},
    {"IQ1_M", "IQ4_NL"},   {"IQ2_XXS", "IQ4_NL"}, {"IQ2_XS", "IQ4_NL"}, {"IQ2_S", "IQ4_NL"},
    {"IQ3_XXS", "IQ4_NL"}, {"IQ3_S", "IQ4_NL"},   {"IQ4_XS", "IQ4_NL"}};

// The wanted type where the rows allow it, else its substitute, else the one that takes all rows.
const quant::Type& fitting_type(const quant::Type& wanted, int64_t inputs) {
  if (inputs % wanted.block_weights == 0) return wanted;
  const auto found = std::find_if(std::begin(kSubstitutes), std::end(kSubstitutes),
                                  [&](const Substitute& row) { return row.wanted == wanted.name; });
  const quant::Type* f16 = quant::find("F16");
  const quant::Type* taken = found == std::end(kSubstitutes) ? f16 : quant::find(found->taken);
  CHECK(taken != nullptr && f16 != nullptr);
  return inputs % taken->block_weights == 0 ? *taken : *f16;
}

class Lister final : public ParameterVisitor {
 public:
  Lister(const quant::Type& type, bool with_output) : type_(type), with_output_(with_output) {}

  Status matrix(std::string_view name, Weight& /*weight*/, std::span<const int64_t> shape,
                Need need) override {
    const bool is_output = name == "output.weight";
    // Values are projected apart from keys, as most models have it.
    const bool is_wanted = (is_output && with_output_) || name.ends_with("attn_v.weight");
    if (need == Need::optional && !is_wanted) return Ok{};
    // Routers stay in f32, as everywhere: they are small, and a tie would change experts.
    const bool is_router = name.find("ffn_gate_inp") != std::string_view::npos;
    const quant::Type& type = is_router ? *quant::find("F32") : fitting_type(type_, shape[0]);
    if (!is_router && &type != &type_) {
      ++replaced_[{shape[0], type.name}];
    }
    add(name, shape, type, true);
    return Ok{};
  }

  Status vector(std::string_view name, Vector& /*vector*/, std::span<const int64_t> shape,
                Need need) override {
    if (need == Need::optional && !name.ends_with("ssm_conv1d.bias")) return Ok{};
    add(name, shape, *quant::find("F32"), false);
    return Ok{};
  }

  SynthTensors take() && {
    for (const auto& [of, count] : replaced_) {
      const auto& [inputs, taken] = of;
      found_.notes.push_back(fmt::format(
          "{} matrices with rows of {} are {}: {} has blocks of {} weights (as llama.cpp does it)",
          count, inputs, taken, type_.name, type_.block_weights));
    }
    return std::move(found_);
  }

 private:
  void add(std::string_view name, std::span<const int64_t> shape, const quant::Type& type,
           bool is_matrix) {
    std::vector<int64_t> dims;
    for (const int64_t size : shape) dims.push_back(size < 0 ? -size : size);  // See usual().
    found_.tensors.push_back({std::string(name), std::move(dims), &type, is_matrix});
  }

  const quant::Type& type_;
  bool with_output_;
  SynthTensors found_;
  std::map<std::pair<int64_t, std::string_view>, int32_t>
      replaced_;  // By inputs and type: how many.
};

// Formats that take long to encode, but whose blocks begin with the f16 that scales all of the
// rest: any codes behind it are weights, and as good as encoded noise.
constexpr std::string_view kScaledCodes[] = {"IQ1_S", "IQ2_XXS", "IQ2_XS",
                                             "IQ2_S", "IQ3_XXS", "IQ3_S"};

bool has_scaled_codes(const quant::Type& type) {
  return std::find(std::begin(kScaledCodes), std::end(kScaledCodes), type.name) !=
         std::end(kScaledCodes);
}

void set_scale(std::byte* block, float scale) {
  const Half half = to_half(scale);
  std::memcpy(block, &half, sizeof(half));
}

// A block of random codes, scaled so that its weights have a root mean square of `scale`.
void make_codes(const quant::Type& type, RandomStream& random, float scale, std::byte* block) {
  std::vector<float> weights(size_t(type.block_weights));
  for (int32_t at = 0; at < type.block_bytes; ++at) block[at] = std::byte(random.below(256));
  set_scale(block, 1.0f);
  type.decode(block, weights.data());
  double squares = 0;
  for (const float weight : weights) squares += double(weight) * double(weight);
  const double rms = std::sqrt(squares / type.block_weights);
  set_scale(block, rms > 0 ? float(double(scale) / rms) : 0.0f);
}

// One element of a vector parameter.
float vector_value(std::string_view name, int64_t inputs, RandomStream& random) {
  if (name.ends_with("ssm_a")) return -1.0f - 15.0f * random.unit();
  // Steps of 0.001 to 0.12 behind the softplus.
  if (name.ends_with("ssm_dt.bias")) return -7.0f + 5.0f * random.unit();
  if (name.find("conv1d") != std::string_view::npos || name.ends_with("conv.conv.weight")) {
    return random.normal() / std::sqrt(float(inputs));
  }
  if (name.ends_with(".bias")) return 0.1f * random.normal();
  return 1.0f + 0.1f * random.normal();  // Gains, and the pass-through of recurrent layers.
}

}  // namespace

int64_t SynthTensor::weight_count() const {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

Result<SynthTensors> list_tensors(models::Model& model, const quant::Type& type, bool with_output) {
  Lister lister(type, with_output);
  CAIRN_TRY(model.visit_parameters(lister));
  if (model.has_predictor()) CAIRN_TRY(model.visit_predictor(lister));
  return std::move(lister).take();
}

void SynthWeights::encode_runs(RunPool& pool, const quant::Type& type, int64_t inputs) {
  const float scale = 1.0f / std::sqrt(float(inputs));
  const int64_t run_count = int64_t(pool.run_count());
  TaskCounter counter;
  threads_->run([&](int) {
    std::vector<float> weights(size_t(pool.run_weights));
    constexpr int64_t kChunk = 16;
    for (int64_t first = counter.claim(kChunk); first < run_count; first = counter.claim(kChunk)) {
      for (int64_t run = first; run < std::min(first + kChunk, run_count); ++run) {
        RandomStream random(seed_, kPoolStream ^ uint64_t(inputs), uint64_t(run));
        const auto blocks =
            std::span(pool.bytes).subspan(size_t(run) * pool.run_bytes, pool.run_bytes);
        if (has_scaled_codes(type)) {
          for (size_t at = 0; at < blocks.size(); at += size_t(type.block_bytes)) {
            make_codes(type, random, scale, blocks.data() + at);
          }
          continue;
        }
        for (float& weight : weights) weight = scale * random.normal();
        quant::encode_row(type, weights, blocks);
      }
    }
  });
}

const SynthWeights::RunPool& SynthWeights::pool_for(const SynthTensor& tensor) {
  const int64_t inputs = tensor.dims[0];
  const auto [at, is_new] = pools_.try_emplace(PoolKey(tensor.type, inputs));
  RunPool& pool = at->second;
  if (!is_new) return pool;
  // The longest run of whole blocks that divides a row.
  int64_t run_weights = tensor.type->block_weights;
  while (2 * run_weights <= kRunWeightsMax && inputs % (2 * run_weights) == 0) run_weights *= 2;
  pool.run_weights = int32_t(run_weights);
  pool.run_bytes = quant::row_bytes(*tensor.type, run_weights);
  pool.bytes.resize(size_t(kPoolRuns) * pool.run_bytes);
  encode_runs(pool, *tensor.type, inputs);
  return pool;
}

Status SynthWeights::write_matrix(const SynthTensor& tensor, uint64_t index,
                                  const std::function<Status(std::span<const std::byte>)>& sink) {
  const RunPool& pool = pool_for(tensor);
  const int64_t run_count = tensor.weight_count() / pool.run_weights;
  const int64_t chunk_count = (run_count + kChunkRuns - 1) / kChunkRuns;
  buffer_.resize(size_t(std::min(run_count, kChunkRuns * kChunksAtOnce)) * pool.run_bytes);
  for (int64_t first = 0; first < chunk_count; first += kChunksAtOnce) {
    const int64_t first_run = first * kChunkRuns;
    const int64_t runs = std::min(run_count - first_run, kChunkRuns * kChunksAtOnce);
    TaskCounter counter;
    threads_->run([&](int) {
      for (int64_t begin = counter.claim(1) * kChunkRuns; begin < runs;
           begin = counter.claim(1) * kChunkRuns) {
        RandomStream random(seed_, index, uint64_t(first_run + begin));
        const int64_t end = std::min(begin + kChunkRuns, runs);
        for (int64_t run = begin; run < end; ++run) {
          const std::byte* chosen =
              pool.bytes.data() + size_t(random.below(pool.run_count())) * pool.run_bytes;
          std::memcpy(buffer_.data() + size_t(run) * pool.run_bytes, chosen, pool.run_bytes);
        }
      }
    });
    CAIRN_TRY(sink(std::span(buffer_).first(size_t(runs) * pool.run_bytes)));
  }
  return Ok{};
}

Status SynthWeights::write(const SynthTensor& tensor, uint64_t index,
                           const std::function<Status(std::span<const std::byte>)>& sink) {
  if (tensor.is_matrix) return write_matrix(tensor, index, sink);
  std::vector<float> values(size_t(tensor.weight_count()));
  RandomStream random(seed_, index, 0);
  for (float& value : values) value = vector_value(tensor.name, tensor.dims[0], random);
  return sink(std::as_bytes(std::span(values)));
}

}  // namespace cairn::synth
