// What config.json says of the name goes before what the folder is called.
#include "convert/general.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <utility>

#include "base/log.h"
#include "convert/model_name.h"

namespace cairn::convert {
namespace {

struct SamplingKey {
  std::string_view source, target;
  bool is_count;
};

// A later row of the same target gives way.
constexpr SamplingKey kSamplingKeys[] = {
    {"top_k", "general.sampling.top_k", true},
    {"top_p", "general.sampling.top_p", false},
    {"min_p", "general.sampling.min_p", false},
    {"xtc_probability", "general.sampling.xtc_probability", false},
    {"xtc_threshold", "general.sampling.xtc_threshold", false},
    {"temperature", "general.sampling.temp", false},
    {"penalty_last_n", "general.sampling.penalty_last_n", true},
    {"penalty_repeat", "general.sampling.penalty_repeat", false},
    {"repetition_penalty", "general.sampling.penalty_repeat", false},
    {"mirostat", "general.sampling.mirostat", true},
    {"mirostat_tau", "general.sampling.mirostat_tau", false},
    {"mirostat_eta", "general.sampling.mirostat_eta", false},
};

Status add_sampling(const std::string& folder, KeyValues& out) {
  const std::filesystem::path path = std::filesystem::path(folder) / "generation_config.json";
  Result<Json> json = read_json_file(path.string());
  if (!json) {
    if (json.error().code == ErrorCode::io) return std::move(json).error();
    // A broken one costs its advice, not the model.
    if (json.error().code != ErrorCode::not_found) log::warning("{}", json.error().message);
    return Ok{};
  }
  for (const SamplingKey& row : kSamplingKeys) {
    const Json* value = json->find_set(row.source);
    if (value == nullptr || out.find(row.target) != nullptr) continue;
    if (row.is_count && value->as_integer()) {
      out.set(row.target, int32_t(std::clamp<int64_t>(*value->as_integer(), -1, INT32_MAX)));
    } else if (!row.is_count && value->as_real()) {
      out.set(row.target, float(*value->as_real()));
    }
  }
  return Ok{};
}

WeightCounts count_weights(const std::vector<PlannedTensor>& tensors) {
  WeightCounts counts;
  int64_t expert_sum = 0, expert_tensors = 0;
  for (const PlannedTensor& tensor : tensors) {
    int64_t size = 1;
    for (const int64_t dim : tensor.dims) size *= dim;
    counts.total += size;
    if (tensor.name.find("_exps.") == std::string::npos || tensor.dims.size() < 3) {
      counts.shared += size;
      continue;
    }
    counts.of_expert += size / tensor.dims[2];
    expert_sum += tensor.dims[2];
    ++expert_tensors;
  }
  if (expert_tensors > 0) counts.expert_count = expert_sum / expert_tensors;
  return counts;
}

// What is empty is taken from the other.
void fill(ModelName& name, const ModelName& from) {
  const auto take = [&](std::string ModelName::*member) {
    if ((name.*member).empty()) name.*member = from.*member;
  };
  for (const auto member : {&ModelName::full, &ModelName::organization, &ModelName::basename,
                            &ModelName::finetune, &ModelName::version, &ModelName::size_label}) {
    take(member);
  }
}

}  // namespace

Status add_general(const std::string& folder, const Config& config,
                   const std::vector<PlannedTensor>& tensors, KeyValues& out) {
  const WeightCounts counts = count_weights(tensors);
  out.set("general.type", std::string("model"));
  CAIRN_TRY(add_sampling(folder, out));
  ModelName name;
  const Json* origin = config.find("_name_or_path");
  const std::string_view id = origin == nullptr ? "" : origin->as_text().value_or("");
  // More slashes are a path of somebody's machine.
  if (!id.empty() && std::count(id.begin(), id.end(), '/') <= 1) {
    fill(name, parse_model_name(id, counts.total));
  }
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(folder, error).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();
  fill(name, parse_model_name(path.filename().string(), counts.total));
  if (name.size_label.empty() && counts.total > 0) name.size_label = size_label(counts);
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) out.set(key, value);
  };
  add("general.name", title_of(name.full));
  add("general.version", name.version);
  add("general.organization", title_of(name.organization));
  add("general.finetune", name.finetune);
  add("general.basename", name.basename);
  add("general.size_label", name.size_label);
  return Ok{};
}

}  // namespace cairn::convert
