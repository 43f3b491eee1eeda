// The order of the metadata is: what the file is, how it is called, its parameters, its tokenizer.
#include "convert/convert.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/output_file.h"
#include "convert/general.h"
#include "convert/parameters.h"
#include "convert/sentence_modules.h"
#include "convert/tokenizer.h"
#include "gguf/writer.h"

namespace cairn::convert {
namespace {

// Of the block formats in files that may be quantized later.
constexpr uint32_t kQuantizationVersion = 2;

Error unknown_class(const Config& config) {
  std::string known;
  for (const FamilyGroup* group : all_family_groups()) {
    for (const Family& family : group->families) {
      for (const std::string_view name : family.classes) {
        known += (known.empty() ? "" : ", ") + std::string(name);
      }
    }
  }
  return fail(ErrorCode::unsupported, "config.json: expected one of {}, found {}", known,
              config.class_name());
}

// One behind the last layer that a tensor is of.
int64_t layer_count(const std::vector<PlannedTensor>& tensors) {
  constexpr std::string_view kLayer = "blk.";
  int64_t count = 0;
  for (const PlannedTensor& tensor : tensors) {
    if (!tensor.name.starts_with(kLayer)) continue;
    int64_t number = 0;
    for (size_t at = kLayer.size(); at < tensor.name.size() && tensor.name[at] != '.'; ++at) {
      number = 10 * number + (tensor.name[at] - '0');
    }
    count = std::max(count, number + 1);
  }
  return count;
}

// What a model's folder has, by its kind of file: a GGUF file that was written there before may be
// written again.
std::vector<FileIdentity> files_of(const std::string& folder) {
  constexpr std::string_view kKinds[] = {".safetensors", ".json", ".model", ".jinja", ".txt"};
  constexpr int kDepthMax = 1;  // Modules of sentence models have folders of their own.
  std::vector<FileIdentity> files;
  namespace fs = std::filesystem;
  std::error_code error;
  auto entry = fs::recursive_directory_iterator(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry.depth() >= kDepthMax) entry.disable_recursion_pending();
    const std::string kind = entry->path().extension().string();
    if (std::find(std::begin(kKinds), std::end(kKinds), kind) == std::end(kKinds)) continue;
    if (const auto file = identity_of(entry->path().string())) files.push_back(*file);
  }
  return files;
}

}  // namespace

Result<ConvertReport> convert(const ConvertOptions& options) {
  const std::vector<FileIdentity> inputs = files_of(options.folder);
  CAIRN_TRY(OutputFile out, OutputFile::open(options.out_path, {.inputs = inputs}));
  CAIRN_TRY(const Config config, Config::load(options.folder));
  const Family* known = find_family(config.class_name());
  if (known == nullptr) return unknown_class(config);
  Family adapted = *known;
  if (known->adapt != nullptr) known->adapt(config, adapted);
  const Family* family = &adapted;
  CAIRN_TRY(const Tokenizer tokenizer, Tokenizer::load(options.folder, config, *family));
  CAIRN_TRY(Checkpoint checkpoint, Checkpoint::open(options.folder));
  if (family->has_dense_modules) CAIRN_TRY(open_dense_modules(options.folder, checkpoint));
  const OutType type = choose_type(checkpoint, options.type);
  KeyValues values;
  values.set("general.architecture", std::string(family->architecture));
  CAIRN_TRY(const std::vector<PlannedTensor> tensors,
            plan_tensors(checkpoint, config, *family, type, tokenizer.token_count(), values));
  CAIRN_TRY(add_general(options.folder, config, tensors, values));
  const int64_t layers_in_file = layer_count(tensors);
  CAIRN_TRY(add_parameters(config, *family, file_type_of(type), layers_in_file, values));
  CAIRN_TRY(check_parameters(values, family->architecture, layers_in_file));
  values.set("general.quantization_version", kQuantizationVersion);
  CAIRN_TRY(tokenizer.add_to(values));

  gguf::Writer writer;
  values.write_to(writer);
  for (const PlannedTensor& tensor : tensors) {
    writer.declare(tensor.name, tensor.dims, tensor.type_id);
  }
  ConvertReport report{.architecture = std::string(family->architecture),
                       .tokenizer = tokenizer.description(),
                       .type = type,
                       .tensor_count = int64_t(tensors.size()),
                       .token_count = tokenizer.token_count()};
  CAIRN_TRY(report.out_bytes, writer.file_bytes());
  CAIRN_TRY(gguf::TensorStream stream, writer.open_file(std::move(out)));
  uint64_t done = 0;
  CAIRN_TRY(write_tensors(checkpoint, tensors, stream, [&](uint64_t bytes) {
    done += bytes;
    if (options.on_progress) options.on_progress(done, report.out_bytes);
  }));
  CAIRN_TRY(stream.finish());
  return report;
}

}  // namespace cairn::convert
