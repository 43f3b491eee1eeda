// A synthetic model is described like a real one: its metadata makes the model, and the model lists
// the parameters that the file must have.
#include "synth/synth.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/output_file.h"
#include "base/threads.h"
#include "gguf/gguf.h"
#include "gguf/writer.h"
#include "models/model.h"
#include "quant/quant.h"
#include "synth/synth_vocabulary.h"
#include "synth/synth_weights.h"

namespace cairn::synth {

namespace {

// The model that these metadata describe, made by way of a file without tensors.
Result<std::unique_ptr<models::Model>> described_model(const gguf::Writer& metadata) {
  std::vector<std::byte> bytes;
  CAIRN_TRY(gguf::TensorStream stream, metadata.open_memory(bytes));
  CAIRN_TRY(stream.finish());
  CAIRN_TRY(const gguf::File file, gguf::File::from_bytes(bytes, "the synthetic model"));
  CAIRN_TRY(const gguf::Metadata meta, file.metadata());
  CAIRN_TRY(const models::Architecture* architecture,
            models::find_architecture(meta.architecture()));
  return architecture->create(meta);
}

// Matrices of experts have names of their own in every architecture.
bool has_experts(const SynthTensors& list) {
  return std::any_of(list.tensors.begin(), list.tensors.end(), [](const SynthTensor& tensor) {
    return tensor.name.find("_exps.") != std::string::npos;
  });
}

}  // namespace

Result<const quant::Type*> matrix_type(std::string_view name) {
  const quant::Type* type = quant::find(name);
  if (type != nullptr) return type;
  return fail(ErrorCode::not_found, "type: expected a type such as Q8_0, Q4_K or F16, found \"{}\"",
              name);
}

Result<SynthReport> write_synthetic(const SynthOptions& options) {
  CAIRN_TRY(check(options.shape));
  // First of all, so that an unknown name is told as such and not as a missing key.
  CAIRN_TRY(models::find_architecture(options.shape.architecture));
  CAIRN_TRY(const quant::Type* type, matrix_type(options.type));
  CAIRN_TRY(OutputFile out, OutputFile::open(options.out_path));
  gguf::Writer writer;
  add_shape(writer, options.shape, options.seed);
  add_vocabulary(writer, options.shape.vocabulary);
  CAIRN_TRY(std::unique_ptr<models::Model> model, described_model(writer));
  if (options.shape.predicting_layers > 0 && !model->has_predictor()) {
    return fail(ErrorCode::invalid_argument, "predicting-layers: expected 0 for {}, found {}",
                options.shape.architecture, options.shape.predicting_layers);
  }
  CAIRN_TRY(SynthTensors list, list_tensors(*model, *type, !options.shape.tied_output));
  if (options.shape.experts > 0 && !has_experts(list)) {
    return fail(ErrorCode::invalid_argument, "experts: expected 0 for {}, found {}",
                options.shape.architecture, options.shape.experts);
  }

  SynthReport report{.notes = std::move(list.notes)};
  for (const SynthTensor& tensor : list.tensors) {
    writer.declare(tensor.name, tensor.dims, tensor.type->gguf_id);
    report.weight_count += tensor.weight_count();
  }
  report.tensor_count = int64_t(list.tensors.size());
  CAIRN_TRY(report.file_bytes, writer.file_bytes());

  CAIRN_TRY(
      const std::unique_ptr<ThreadPool> threads,
      ThreadPool::start(options.thread_count > 0 ? options.thread_count : usable_core_count()));
  SynthWeights weights(options.seed, threads.get());
  CAIRN_TRY(gguf::TensorStream stream, writer.open_file(std::move(out)));
  uint64_t done_bytes = 0;
  for (size_t index = 0; index < list.tensors.size(); ++index) {
    const auto append = [&](std::span<const std::byte> bytes) -> Status {
      CAIRN_TRY(stream.append(bytes));
      done_bytes += bytes.size();
      if (options.on_progress) options.on_progress(done_bytes, report.file_bytes);
      return Ok{};
    };
    CAIRN_TRY(weights.write(list.tensors[index], index, append));
  }
  CAIRN_TRY(stream.finish());
  return report;
}

}  // namespace cairn::synth
