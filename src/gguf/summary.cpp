// One walk over the tensors, one over the fields.
#include "gguf/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace cairn::gguf {

namespace {

constexpr std::string_view kTokenizer = "tokenizer.ggml.";
constexpr std::string_view kTemplate = "tokenizer.chat_template";

std::string text_of(const File& file, std::string_view key) {
  auto text = file.fields().get<std::string_view>(key);
  return text ? std::string(*text) : std::string();
}

std::vector<TypeShare> type_shares(const File& file) {
  std::vector<TypeShare> shares;
  std::map<uint32_t, size_t> places;  // Files may name as many types as they have tensors.
  for (const Tensor& tensor : file.tensors()) {
    const auto [place, is_new] = places.try_emplace(tensor.type_id, shares.size());
    if (is_new) shares.push_back({.type_id = tensor.type_id});
    TypeShare& share = shares[place->second];
    ++share.tensor_count;
    share.weight_count += uint64_t(tensor.weight_count);
    share.bytes += tensor.bytes.size();
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const TypeShare& a, const TypeShare& b) { return a.bytes > b.bytes; });
  return shares;
}

// The numbers that tokenizer.ggml.token_type uses.
std::string_view token_kind_name(int64_t kind) {
  constexpr std::string_view kNames[] = {"undefined",    "normal", "unknown", "control",
                                         "user-defined", "unused", "byte"};
  return kind >= 0 && kind < int64_t(std::size(kNames)) ? kNames[kind] : "other";
}

std::vector<std::pair<std::string, uint64_t>> token_kinds(const Integers& types) {
  std::vector<std::pair<std::string, uint64_t>> kinds;
  for (size_t token = 0; token < types.size(); ++token) {
    const std::string_view name = token_kind_name(types[token]);
    auto kind = std::find_if(kinds.begin(), kinds.end(),
                             [&](const auto& other) { return other.first == name; });
    if (kind == kinds.end()) kind = kinds.insert(kind, {std::string(name), 0});
    ++kind->second;
  }
  return kinds;
}

std::optional<TokenizerSummary> tokenizer_summary(const File& file) {
  const Fields& fields = file.fields();
  const auto key = [](std::string_view name) { return fmt::format("{}{}", kTokenizer, name); };
  if (fields.find(key("model")) == nullptr && fields.find(key("tokens")) == nullptr) {
    return std::nullopt;
  }
  TokenizerSummary summary;
  summary.model = text_of(file, key("model"));
  summary.pre = text_of(file, key("pre"));
  std::vector<std::string_view> tokens;
  if (auto found = fields.get<Strings>(key("tokens"))) {
    tokens.assign(found->begin(), found->end());
  }
  summary.token_count = tokens.size();
  if (auto merges = fields.get<Strings>(key("merges"))) summary.merge_count = merges->size();
  if (auto types = fields.get<Integers>(key("token_type"))) {
    summary.kinds = token_kinds(*types);
  }
  for (const Field& field : fields.all()) {
    // Of a key that stands twice the first counts.
    if (!field.key.starts_with(kTokenizer) || fields.find(field.key) != &field.value) continue;
    std::string_view name = field.key.substr(kTokenizer.size());
    if (const auto flag = boolean_in(field.value)) {
      summary.flags.emplace_back(std::string(name), *flag);
    }
    constexpr std::string_view kSuffix = "_token_id";
    const std::optional<int64_t> id = integer_in(field.value);
    if (!id || !name.ends_with(kSuffix)) continue;
    name.remove_suffix(kSuffix.size());
    SpecialToken special{.name = std::string(name), .id = *id, .piece = std::nullopt};
    if (*id >= 0 && uint64_t(*id) < tokens.size()) special.piece = tokens[size_t(*id)];
    summary.specials.push_back(std::move(special));
  }
  return summary;
}

}  // namespace

Summary summarise(const File& file) {
  Summary summary;
  summary.architecture = text_of(file, "general.architecture");
  summary.name = text_of(file, "general.name");
  summary.types = type_shares(file);
  for (const TypeShare& share : summary.types) {
    summary.weight_count += share.weight_count;
    summary.tensor_bytes += share.bytes;
  }
  uint64_t stored = 0;
  for (const Tensor& tensor : file.tensors()) {
    if (!tensor.bytes.empty()) stored += uint64_t(tensor.weight_count);
  }
  if (stored != 0) summary.bits_per_weight = 8.0 * double(summary.tensor_bytes) / double(stored);
  summary.tokenizer = tokenizer_summary(file);
  for (const Field& field : file.fields().all()) {
    const bool is_first = file.fields().find(field.key) == &field.value;
    if (!field.key.starts_with(kTemplate) || !is_first) continue;
    if (const auto text = string_in(field.value)) {
      summary.templates.emplace_back(std::string(field.key), *text);
    }
  }
  return summary;
}

}  // namespace cairn::gguf
