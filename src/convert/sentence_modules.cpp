// Names in modules.json are folders within this one; nothing else is opened.
#include "convert/sentence_modules.h"

#include <filesystem>
#include <optional>
#include <utility>

namespace cairn::convert {
namespace {

constexpr size_t kDenseCount = 2;
constexpr std::string_view kDenseNames[kDenseCount] = {"dense_2", "dense_3"};
constexpr std::string_view kIdentity = "torch.nn.modules.linear.Identity";

// The folders of the modules of a kind. None where the folder is a model's alone.
Result<std::vector<std::filesystem::path>> folders_of(const std::filesystem::path& folder,
                                                      std::string_view kind) {
  std::vector<std::filesystem::path> found;
  Result<Json> modules = read_json_file((folder / "modules.json").string());
  if (!modules) {
    if (modules.error().code == ErrorCode::not_found) return found;
    return std::move(modules).error();
  }
  for (const Json& part : modules->items()) {
    if (!part.text_at("type").value_or("").ends_with(kind)) continue;
    const std::string name(part.text_at("path").value_or(""));
    if (name.empty() || name.find("..") != name.npos || name.front() == '/' ||
        name.find('\0') != name.npos) {
      return fail(ErrorCode::invalid_data, "modules.json: expected a folder within, found {}",
                  name.substr(0, 80));
    }
    found.push_back(folder / name);
  }
  return found;
}

struct DenseSizes {
  int64_t in, out;
};

Result<std::optional<std::vector<DenseSizes>>> dense_sizes(const std::filesystem::path& folder) {
  CAIRN_TRY(const std::vector<std::filesystem::path> folders, folders_of(folder, "Dense"));
  if (folders.empty()) return std::optional<std::vector<DenseSizes>>();
  if (folders.size() != kDenseCount) {
    return fail(ErrorCode::unsupported, "modules.json: expected {} of Dense, found {}", kDenseCount,
                folders.size());
  }
  std::vector<DenseSizes> sizes;
  for (const std::filesystem::path& path : folders) {
    const std::string file = (path / "config.json").string();
    CAIRN_TRY(const Json config, read_json_file(file));
    const std::string_view activation = config.text_at("activation_function").value_or("none");
    if (activation != kIdentity) {
      return fail(ErrorCode::unsupported, "{}: activation_function: expected {}, found {}", file,
                  kIdentity, activation.substr(0, 80));
    }
    const auto count_of = [&](std::string_view key) {
      const Json* value = config.find_set(key);
      const int64_t count = value == nullptr ? 0 : value->as_integer().value_or(0);
      return count > INT32_MAX ? 0 : count;
    };
    sizes.push_back({count_of("in_features"), count_of("out_features")});
    if (sizes.back().in > 0 && sizes.back().out > 0) continue;
    return fail(ErrorCode::invalid_data,
                "{}: expected in_features and out_features of 1 or more, found others", file);
  }
  return std::optional(std::move(sizes));
}

}  // namespace

Status add_pooling(ParameterWriter& writer) {
  CAIRN_TRY(const std::vector<std::filesystem::path> folders,
            folders_of(writer.config().folder(), "Pooling"));
  if (folders.empty()) return Ok{};
  const std::string file = (folders.front() / "config.json").string();
  CAIRN_TRY(const Json pooling, read_json_file(file));
  const std::string_view mode = pooling.text_at("pooling_mode").value_or("");
  const bool is_mean = pooling.is_true_at("pooling_mode_mean_tokens") || mode == "mean";
  const bool is_first = pooling.is_true_at("pooling_mode_cls_token") || mode == "cls";
  const bool is_last = pooling.is_true_at("pooling_mode_lasttoken") || mode == "lasttoken";
  if (!is_mean && !is_first && !is_last) {
    return fail(ErrorCode::unsupported,
                "{}: expected a pooling of mean, cls or lasttoken, found another", file);
  }
  writer.set("pooling_type", uint32_t(is_mean ? 1 : is_first ? 2 : 3));
  return Ok{};
}

std::vector<std::string> labels_of(const Config& config) {
  std::vector<std::string> labels;
  const Json* stated = config.find("id2label");
  for (size_t id = 0; stated != nullptr && id < stated->members().size(); ++id) {
    const auto text = stated->text_at(std::to_string(id));
    if (text) labels.emplace_back(*text);
  }
  if (labels.size() == 2 && labels[0] == "LABEL_0") labels.clear();
  return labels;
}

Status open_dense_modules(const std::string& folder, Checkpoint& checkpoint) {
  CAIRN_TRY(const std::vector<std::filesystem::path> folders, folders_of(folder, "Dense"));
  for (size_t i = 0; i < folders.size(); ++i) {
    const std::string file = (folders[i] / "model.safetensors").string();
    CAIRN_TRY(checkpoint.add_module(file));
    const auto tensors = checkpoint.module_tensors();
    if (tensors.size() == i + 1 && tensors[i].name == "linear.weight") continue;
    return fail(ErrorCode::unsupported, "{}: expected linear.weight alone, found {} tensors", file,
                tensors.size() - i);
  }
  return Ok{};
}

Status add_dense_sizes(ParameterWriter& writer) {
  CAIRN_TRY(const auto sizes, dense_sizes(writer.config().folder()));
  for (size_t i = 0; sizes && i < sizes->size(); ++i) {
    const std::string name(kDenseNames[i]);
    writer.set(name + "_feat_in", uint32_t((*sizes)[i].in));
    writer.set(name + "_feat_out", uint32_t((*sizes)[i].out));
  }
  return Ok{};
}

Status add_dense_tensors(TensorPlan& plan) {
  const auto sources = plan.checkpoint().module_tensors();
  if (sources.empty()) return Ok{};
  CAIRN_TRY(const auto sizes, dense_sizes(plan.config().folder()));
  for (size_t i = 0; sizes && i < sizes->size(); ++i) {
    const SourceTensor& source = sources[i];
    const auto [in, out] = (*sizes)[i];
    if (source.shape != std::vector{out, in}) {
      return fail(ErrorCode::invalid_data, "{}: {}: expected shape [{}, {}], found {}",
                  kDenseNames[i], source.name, out, in, shape_text(source));
    }
    CAIRN_TRY(plan.add_whole({.rest = {}, .layer = {}, .expert = {}, .ending = ".weight"},
                             kDenseNames[i], source));
  }
  return Ok{};
}

}  // namespace cairn::convert
