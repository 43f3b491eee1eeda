// Reads, decodes, encodes and writes a piece of a tensor at a time.
#include "quantize/quantize.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "base/output_file.h"
#include "base/threads.h"
#include "gguf/gguf.h"
#include "gguf/writer.h"
#include "quant/reach.h"
#include "quantize/importance.h"
#include "quantize/quantize_types.h"

namespace cairn::quantize {

namespace {

// Rows in work between two writes: so many bytes of them, and at least one for each thread.
constexpr size_t kPieceBytes = size_t(16) << 20;
constexpr uint32_t kQuantizationVersion = 2;

// All fields but those of the parts and those that say how the weights are stored.
void copy_fields(const gguf::Fields& fields, const QuantMix& mix, const Importance* importance,
                 gguf::Writer& writer) {
  for (const gguf::Field& field : fields.all()) {
    const bool is_new = field.key.starts_with("split.") || field.key == "general.file_type" ||
                        field.key == "general.quantization_version" ||
                        field.key == "general.alignment" ||
                        field.key.starts_with("quantize.imatrix.");
    if (!is_new) writer.add(field.key, field.value);
  }
  writer.add("general.quantization_version", kQuantizationVersion);
  writer.add("general.file_type", uint32_t(mix.file_type));
  if (importance == nullptr) return;
  writer.add("quantize.imatrix.entries_count", int32_t(importance->size()));
  if (!importance->datasets().empty()) {
    writer.add("quantize.imatrix.dataset", std::string_view(importance->datasets()[0]));
  }
}

bool all_within(std::span<const float> weights, float reach) {
  return std::all_of(weights.begin(), weights.end(),
                     [reach](float weight) { return quant::is_within(weight, reach); });
}

Error out_of_reach(const gguf::Tensor& tensor, const quant::Type& type, int64_t row,
                   std::span<const float> weights) {
  const float reach = quant::reach_of(type);
  const auto bad = std::find_if(weights.begin(), weights.end(),
                                [reach](float weight) { return !quant::is_within(weight, reach); });
  const auto index = bad - weights.begin();
  if (!std::isfinite(*bad)) {
    return fail(ErrorCode::invalid_data,
                "tensor {}: row {}, weight {}: expected a finite one, found {}", tensor.name, row,
                index, *bad);
  }
  return fail(ErrorCode::invalid_data,
              "tensor {}: row {}, weight {}: expected at most {} for {}, found {}; use {}",
              tensor.name, row, index, reach, type.name, *bad, quant::wider_than(type));
}

// Of a tensor that stays as it is. Blocks have been looked at when they were made.
Status check_finite(const gguf::Tensor& tensor) {
  if (tensor.type == nullptr || !tensor.type->is_float()) return Ok{};
  const size_t row_bytes = quant::row_bytes(*tensor.type, tensor.dims[0]);
  std::vector<float> weights(static_cast<size_t>(tensor.dims[0]));
  for (int64_t row = 0; row < tensor.row_count(); ++row) {
    quant::decode_row(*tensor.type, tensor.bytes.subspan(size_t(row) * row_bytes, row_bytes),
                      weights);
    if (!all_within(weights, std::numeric_limits<float>::max())) {
      return out_of_reach(tensor, *tensor.type, row, weights);
    }
  }
  return Ok{};
}

class TensorWriter {
 public:
  TensorWriter(ThreadPool* threads, gguf::TensorStream* stream)
      : threads_(threads), stream_(stream) {}

  // `factors`: one for each input, for each expert; or none.
  Status encode(const gguf::Tensor& tensor, const quant::Type& type,
                std::span<const float> factors) {
    const int64_t inputs = tensor.dims[0];
    const size_t in_bytes = quant::row_bytes(*tensor.type, inputs);
    const size_t out_bytes = quant::row_bytes(type, inputs);
    const int64_t rows_of_expert = tensor.dims[1];
    const int64_t piece_rows =
        std::max(int64_t(kPieceBytes / out_bytes), int64_t(threads_->thread_count()));
    for (int64_t first = 0; first < tensor.row_count(); first += piece_rows) {
      const int64_t count = std::min(piece_rows, tensor.row_count() - first);
      piece_.resize(size_t(count) * out_bytes);
      TaskCounter counter;
      std::atomic<int64_t> bad_row =
          INT64_MAX;  // The first with weights that the type cannot hold.
      threads_->run([&](int) {
        std::vector<float> weights(static_cast<size_t>(inputs));
        for (int64_t row = counter.claim(1); row < count; row = counter.claim(1)) {
          const size_t at = size_t(first + row);
          quant::decode_row(*tensor.type, tensor.bytes.subspan(at * in_bytes, in_bytes), weights);
          if (!all_within(weights, quant::reach_of(type))) {
            int64_t known = bad_row.load();
            while (first + row < known && !bad_row.compare_exchange_weak(known, first + row)) {
            }
            continue;
          }
          const size_t expert = at / size_t(rows_of_expert);
          const auto of_row =
              factors.empty() ? factors : factors.subspan(expert * size_t(inputs), size_t(inputs));
          quant::encode_row(type, weights,
                            std::span(piece_).subspan(size_t(row) * out_bytes, out_bytes), of_row);
        }
      });
      if (bad_row.load() < INT64_MAX) {
        std::vector<float> weights(static_cast<size_t>(inputs));
        quant::decode_row(*tensor.type,
                          tensor.bytes.subspan(size_t(bad_row.load()) * in_bytes, in_bytes),
                          weights);
        return out_of_reach(tensor, type, bad_row.load(), weights);
      }
      CAIRN_TRY(stream_->append(piece_));
    }
    return Ok{};
  }

 private:
  ThreadPool* threads_;
  gguf::TensorStream* stream_;
  std::vector<std::byte> piece_;
};

Result<OutputFile> open_output(const gguf::File& in, const QuantizeOptions& options) {
  std::vector<FileIdentity> inputs = in.identities();
  if (const auto importance = identity_of(options.importance_path)) inputs.push_back(*importance);
  return OutputFile::open(options.out_path, {.inputs = inputs});
}

bool loses_again(const gguf::Tensor& tensor, const quant::Type* type) {
  return type != nullptr && type != tensor.type && !tensor.type->is_float();
}

// Declares all tensors, and counts what they become.
Status declare_tensors(const gguf::File& file, const TypeChoice& choice, gguf::Writer& writer,
                       QuantizeReport& report) {
  int64_t lost_twice = 0;
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const gguf::Tensor& tensor = file.tensors()[i];
    const uint32_t type_id = choice.types[i] != nullptr ? choice.types[i]->gguf_id : tensor.type_id;
    writer.declare(tensor.name, std::span(tensor.dims).first(size_t(tensor.dim_count)), type_id);
    ++report.tensor_counts[gguf::type_name(type_id)];
    report.weight_count += tensor.weight_count;
    lost_twice += loses_again(tensor, choice.types[i]) ? 1 : 0;
  }
  if (lost_twice > 0) {
    report.notes.push_back(
        fmt::format("{} matrices were quantized before: what that lost stays lost", lost_twice));
  }
  CAIRN_TRY(report.out_bytes, writer.file_bytes());
  return Ok{};
}

Status write_tensors(const gguf::File& file, const TypeChoice& choice, const Importance* importance,
                     const QuantizeOptions& options, gguf::TensorStream& stream,
                     QuantizeReport& report) {
  const auto tensors = file.tensors();
  CAIRN_TRY(
      const std::unique_ptr<ThreadPool> threads,
      ThreadPool::start(options.thread_count > 0 ? options.thread_count : usable_core_count()));
  TensorWriter out(threads.get(), &stream);
  uint64_t done = 0, total = 0;
  for (const gguf::Tensor& tensor : tensors) total += tensor.bytes.size();
  int64_t without_factors = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const gguf::Tensor& tensor = tensors[i];
    const quant::Type* type = choice.types[i];
    file.will_need(tensor.bytes);
    if (type == nullptr || type == tensor.type) {
      CAIRN_TRY(check_finite(tensor));
      CAIRN_TRY(stream.append(tensor.bytes));
    } else {
      std::span<const float> factors;
      if (importance != nullptr && !type->is_float()) {
        const int64_t experts = tensor.dims[2] * tensor.dims[3];
        CAIRN_TRY(factors, importance->of(tensor.name, tensor.dims[0], experts));
        without_factors += factors.empty() ? 1 : 0;
      }
      CAIRN_TRY(out.encode(tensor, *type, factors));
    }
    file.forget(tensor.bytes);
    done += tensor.bytes.size();
    if (options.on_progress) options.on_progress(done, total);
  }
  if (without_factors > 0) {
    report.notes.push_back(
        fmt::format("{} matrices have no importances in the file", without_factors));
  }
  return stream.finish();
}

// Importances of another model would change nothing, and nobody would know.
Status check_importances(const gguf::File& file, const Importance& importance,
                         const QuantizeOptions& options, QuantizeReport& report) {
  int64_t fitting = 0;
  for (const gguf::Tensor& tensor : file.tensors()) fitting += importance.has(tensor.name) ? 1 : 0;
  if (fitting == 0) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected importances of matrices of {}, found {} of others (one is {})",
                options.importance_path, options.in_path, importance.size(),
                importance.first_name());
  }
  const int64_t foreign = int64_t(importance.size()) - fitting;
  if (foreign > 0) {
    report.notes.push_back(
        fmt::format("{} importances are of matrices that the model does not have", foreign));
  }
  return Ok{};
}

}  // namespace

Result<QuantizeReport> quantize(const QuantizeOptions& options) {
  CAIRN_TRY(const QuantMix* mix, find_mix(options.mix));
  CAIRN_TRY(const gguf::File file, gguf::File::open(options.in_path));
  CAIRN_TRY(OutputFile out, open_output(file, options));
  std::optional<Importance> importance;
  if (!options.importance_path.empty()) {
    CAIRN_TRY(importance, Importance::load(options.importance_path));
  }
  const Importance* factors = importance ? &*importance : nullptr;
  CAIRN_TRY(TypeChoice choice, choose_types(file, *mix, options.overrides, factors != nullptr));
  QuantizeReport report{.in_bytes = file.file_bytes(),
                        .blind_count = choice.blind_count,
                        .notes = std::move(choice.notes)};
  if (factors != nullptr) CAIRN_TRY(check_importances(file, *factors, options, report));
  gguf::Writer writer;
  copy_fields(file.fields(), *mix, factors, writer);
  CAIRN_TRY(declare_tensors(file, choice, writer, report));
  CAIRN_TRY(gguf::TensorStream stream, writer.open_file(std::move(out)));
  CAIRN_TRY(write_tensors(file, choice, factors, options, stream, report));
  return report;
}

}  // namespace cairn::quantize
