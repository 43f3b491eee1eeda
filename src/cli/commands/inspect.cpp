// What a summary says, rendered in two ways: as aligned text and as JSON.
#include "cli/commands/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "cli/commands/commands.h"
#include "cli/commands/find_model.h"
#include "cli/options/model_argument.h"
#include "cli/reports/inspect_security.h"
#include "command_line/exit_codes.h"
#include "engine/pooling.h"
#include "gguf/summary.h"
#include "json/value.h"

namespace cairn::cli {
namespace {

using gguf::Field;
using gguf::File;
using gguf::SpecialToken;
using gguf::Summary;
using gguf::Tensor;
using gguf::TokenizerSummary;
using gguf::TypeShare;
using gguf::Value;
using gguf::ValueType;
using Json = json::Value;

constexpr size_t kJsonArrayMax = 64;
constexpr size_t kJsonArrayFirst = 8;
constexpr size_t kTextArrayFirst = 6;
constexpr size_t kTextValueColumns = 72;
constexpr std::string_view kTemplate = "tokenizer.chat_template";

// Empty where the file does not say it.
std::string pooling_text(const File& file) {
  auto pooling = pooling_of(file);
  return pooling && *pooling ? std::string(name(**pooling)) : std::string();
}

// ---- JSON ----

Json json_real(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";  // Whatever its sign.
  return fmt::format("{}", value);
}

Json json_scalar(const Value& value) {
  if (const auto text = gguf::string_in(value)) return std::string(*text);
  if (const auto flag = gguf::boolean_in(value)) return *flag;
  if (const auto number = gguf::real_in(value)) return json_real(*number);
  if (const auto number = gguf::unsigned_in(value)) return *number;
  return *gguf::integer_in(value);
}

Json json_elements(const Value& array, size_t count) {
  Json elements = Json::array();
  if (array.element == ValueType::string) {
    const gguf::Strings strings(array);
    auto at = strings.begin();
    for (size_t index = 0; index < count; ++index, ++at) elements.push_back(std::string(*at));
    return elements;
  }
  const size_t size = gguf::size_of(array.element);
  for (size_t index = 0; index < count; ++index) {
    elements.push_back(json_scalar(Value{.type = array.element,
                                         .element = array.element,
                                         .count = 1,
                                         .bytes = array.bytes.subspan(index * size, size)}));
  }
  return elements;
}

Json json_value(const Value& value) {
  if (!value.is_array()) {
    return {{"type", gguf::name_of(value.type)}, {"value", json_scalar(value)}};
  }
  Json json = {
      {"type", "array"}, {"element", gguf::name_of(value.element)}, {"count", value.count}};
  if (value.count <= kJsonArrayMax) {
    json["value"] = json_elements(value, size_t(value.count));
  } else {
    json["first"] = json_elements(value, kJsonArrayFirst);
  }
  return json;
}

Json json_tokenizer(const TokenizerSummary& tokenizer) {
  std::vector<Json::Member> specials, flags;
  for (const SpecialToken& special : tokenizer.specials) {
    Json json = {{"id", special.id}};
    if (special.piece) json["piece"] = std::string(*special.piece);
    specials.push_back({special.name, std::move(json)});
  }
  Json kinds = Json::object();
  for (const auto& [name, count] : tokenizer.kinds) kinds[name] = count;
  for (const auto& [name, flag] : tokenizer.flags) flags.push_back({name, flag});
  return {{"model", tokenizer.model},
          {"pre", tokenizer.pre},
          {"tokens", tokenizer.token_count},
          {"merges", tokenizer.merge_count},
          {"token_kinds", std::move(kinds)},
          {"special_tokens", Json::object(std::move(specials))},
          {"flags", Json::object(std::move(flags))}};
}

Json json_tensors(const File& file) {
  Json tensors = Json::array();
  for (const Tensor& tensor : file.tensors()) {
    Json dims = Json::array();
    for (int32_t dim = 0; dim < tensor.dim_count; ++dim) dims.push_back(tensor.dims[size_t(dim)]);
    // Moved one by one, where a list in braces would copy them: there may be many tensors.
    std::vector<Json::Member> members;
    members.reserve(8);
    members.push_back({"name", std::string(tensor.name)});
    members.push_back({"type", gguf::type_name(tensor.type_id)});
    members.push_back({"type_id", tensor.type_id});
    members.push_back({"shape", std::move(dims)});
    members.push_back({"parameters", tensor.weight_count});
    members.push_back({"bytes", tensor.bytes.size()});
    members.push_back({"offset", tensor.offset});
    members.push_back({"part", tensor.part});
    tensors.push_back(Json::object(std::move(members)));
  }
  return tensors;
}

std::string json_report(const File& file, const Summary& summary) {
  Json types = Json::array();
  for (const TypeShare& share : summary.types) {
    types.push_back({{"type", gguf::type_name(share.type_id)},
                     {"tensors", share.tensor_count},
                     {"parameters", share.weight_count},
                     {"bytes", share.bytes}});
  }
  std::vector<Json::Member> metadata, templates;
  for (const Field& field : file.fields().all()) {
    // Of a key that stands twice the first counts; the problems name it.
    if (file.fields().find(field.key) != &field.value) continue;
    metadata.push_back({std::string(field.key), json_value(field.value)});
  }
  for (const auto& [key, text] : summary.templates) templates.push_back({key, std::string(text)});
  Json report = {{"path", file.name()},
                 {"gguf_version", file.version()},
                 {"alignment", file.alignment()},
                 {"file_bytes", file.file_bytes()},
                 {"parts", file.part_count()},
                 {"architecture", summary.architecture},
                 {"name", summary.name},
                 {"parameters", summary.weight_count},
                 {"tensor_bytes", summary.tensor_bytes},
                 {"bits_per_weight", summary.bits_per_weight},
                 {"problem_count", file.problems().count},
                 {"problems", file.problems().lines},
                 {"types", std::move(types)},
                 {"metadata", Json::object(std::move(metadata))},
                 {"tensors", json_tensors(file)}};
  const std::string pooling = pooling_text(file);
  if (!pooling.empty()) report["pooling"] = pooling;
  if (summary.tokenizer) report["tokenizer"] = json_tokenizer(*summary.tokenizer);
  report["chat_templates"] = Json::object(std::move(templates));
  return json::to_text(report, {.indent = 2, .is_ascii = true}) + "\n";
}

// ---- Text ----

std::string with_commas(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string size_text(uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double size = double(bytes);
  size_t unit = 0;
  while (size >= 1024.0 && unit + 1 < std::size(kUnits)) {
    size /= 1024.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.2f} {}", size, kUnits[unit]);
}

// "4.25 MiB (4,453,952 bytes)"; small sizes once only.
std::string exact_size_text(uint64_t bytes) {
  if (bytes < 1024) return size_text(bytes);
  return fmt::format("{} ({} bytes)", size_text(bytes), with_commas(bytes));
}

std::string parameters_text(uint64_t count) {
  const std::string exact = with_commas(count);
  if (count >= 1000000000) return fmt::format("{:.2f} B ({})", double(count) / 1e9, exact);
  if (count >= 1000000) return fmt::format("{:.2f} M ({})", double(count) / 1e6, exact);
  return exact;
}

// One line whatever the text: control characters visible, the end cut off at so many characters.
std::string one_line(std::string_view text, size_t columns = kTextValueColumns) {
  std::string line;
  size_t shown = 0;
  for (const char c : printable(text.substr(0, columns * 4))) {
    const bool starts_character = (uint8_t(c) & 0xc0u) != 0x80u;
    if (starts_character && ++shown > columns) return line + "…";
    line += c == '\n' ? "\\n" : c == '\t' ? "\\t" : std::string(1, c);
  }
  return text.size() > columns * 4 ? line + "…" : line;
}

std::string quoted(std::string_view text, size_t columns = kTextValueColumns) {
  return fmt::format("\"{}\"", one_line(text, columns));
}

std::string scalar_text(const Value& value) {
  if (const auto text = gguf::string_in(value)) return quoted(*text);
  if (const auto flag = gguf::boolean_in(value)) return *flag ? "true" : "false";
  if (value.type == ValueType::f32) return fmt::format("{}", float(*gguf::real_in(value)));
  if (const auto number = gguf::real_in(value)) return fmt::format("{}", *number);
  if (const auto number = gguf::unsigned_in(value)) return fmt::format("{}", *number);
  return fmt::format("{}", *gguf::integer_in(value));
}

std::string array_text(const Value& array) {
  std::string text;
  const size_t shown = size_t(std::min<uint64_t>(array.count, kTextArrayFirst));
  if (array.element == ValueType::string) {
    auto at = gguf::Strings(array).begin();
    for (size_t index = 0; index < shown; ++index, ++at) {
      text += fmt::format("{}{}", index == 0 ? "" : ", ", quoted(*at, 16));
    }
  } else {
    const size_t size = gguf::size_of(array.element);
    for (size_t index = 0; index < shown; ++index) {
      const Value element{.type = array.element,
                          .element = array.element,
                          .count = 1,
                          .bytes = array.bytes.subspan(index * size, size)};
      text += fmt::format("{}{}", index == 0 ? "" : ", ", scalar_text(element));
    }
  }
  return fmt::format("[{}{}]", text, array.count > shown ? ", …" : "");
}

std::string type_text(const Value& value) {
  if (!value.is_array()) return std::string(gguf::name_of(value.type));
  return fmt::format("{}[{}]", gguf::name_of(value.element), value.count);
}

// Rows of cells, each column as wide as its widest cell; marked columns are set to the right.
class Table {
 public:
  explicit Table(std::vector<bool> right) : right_(std::move(right)), widths_(right_.size()) {}

  void add(std::vector<std::string> row) {
    for (size_t column = 0; column < row.size(); ++column) {
      widths_[column] = std::max(widths_[column], columns_of(row[column]));
    }
    rows_.push_back(std::move(row));
  }

  std::string text() const {
    std::string out;
    for (const std::vector<std::string>& row : rows_) {
      std::string line = "  ";
      for (size_t column = 0; column < row.size(); ++column) {
        const std::string gap(widths_[column] - columns_of(row[column]), ' ');
        if (column != 0) line += "  ";
        line += right_[column] ? gap + row[column] : row[column] + gap;
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    return out;
  }

 private:
  static size_t columns_of(std::string_view text) {
    return size_t(std::count_if(text.begin(), text.end(),
                                [](char c) { return (uint8_t(c) & 0xc0u) != 0x80u; }));
  }

  std::vector<bool> right_;
  std::vector<size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

// Layers that only guess further tokens stand in the file and are left out.
void add_layers(const File& file, Table& table) {
  Result<gguf::Metadata> meta = file.metadata();
  if (!meta) return;
  Result<int32_t> layers = meta->count("block_count");
  Result<int32_t> guessing = meta->count_or("nextn_predict_layers", 0);
  if (!layers || !guessing || *guessing == 0 || *guessing >= *layers) return;
  table.add(
      {"layers", fmt::format("{}, and behind them {} that only guess further tokens (not used)",
                             *layers - *guessing, *guessing)});
}

std::string head_text(const File& file, const Summary& summary) {
  Table table({false, false});
  if (!summary.name.empty()) table.add({"name", one_line(summary.name)});
  table.add({"architecture",
             summary.architecture.empty() ? "(not said)" : one_line(summary.architecture)});
  const std::string pooling = pooling_text(file);
  if (!pooling.empty()) table.add({"pooling", pooling + " (cairn embed)"});
  auto adapter = file.fields().get<std::string_view>("adapter.type");
  if (adapter && !adapter->empty()) table.add({"adapter", one_line(*adapter) + " (--lora)"});
  add_layers(file, table);
  if (!file.tensors().empty()) {
    table.add({"parameters", parameters_text(summary.weight_count)});
    table.add({"weights",
               fmt::format("{} in {} tensors, {:.2f} bits each", size_text(summary.tensor_bytes),
                           with_commas(file.tensors().size()), summary.bits_per_weight)});
  }
  std::string parts = file.part_count() == 1 ? "" : fmt::format(" in {} files", file.part_count());
  table.add({"file",
             fmt::format("{}{}, GGUF version {}, alignment {}", exact_size_text(file.file_bytes()),
                         parts, file.version(), file.alignment())});
  return fmt::format("{}\n{}", one_line(file.name(), 4096), table.text());
}

std::string problems_text(const File& file) {
  const gguf::Problems& problems = file.problems();
  if (problems.count == 0) return "";
  std::string text = fmt::format("\nProblems ({}): this file can be read, but not run\n",
                                 with_commas(problems.count));
  for (const std::string& line : problems.lines)
    text += fmt::format("  {}\n", one_line(line, 1024));
  if (problems.lines.size() < problems.count) {
    text += fmt::format("  … and {} more\n", with_commas(problems.count - problems.lines.size()));
  }
  return text;
}

std::string types_text(const Summary& summary) {
  if (summary.types.empty()) return "";
  Table table({false, true, true, true, true});
  table.add({"type", "tensors", "parameters", "size", "share"});
  for (const TypeShare& share : summary.types) {
    const double part = summary.tensor_bytes == 0
                            ? 0.0
                            : 100.0 * double(share.bytes) / double(summary.tensor_bytes);
    table.add({gguf::type_name(share.type_id), with_commas(share.tensor_count),
               with_commas(share.weight_count), size_text(share.bytes),
               fmt::format("{:.1f} %", part)});
  }
  return "\nTypes\n" + table.text();
}

std::string tokenizer_text(const Summary& summary) {
  if (!summary.tokenizer) return "";
  const TokenizerSummary& tokenizer = *summary.tokenizer;
  Table table({false, false});
  table.add({"model", one_line(tokenizer.model)});
  if (!tokenizer.pre.empty()) table.add({"pre-tokenizer", one_line(tokenizer.pre)});
  std::string kinds;
  for (const auto& [name, count] : tokenizer.kinds) {
    kinds += fmt::format("{}{} {}", kinds.empty() ? ": " : ", ", with_commas(count), name);
  }
  table.add({"tokens", with_commas(tokenizer.token_count) + kinds});
  if (tokenizer.merge_count != 0) table.add({"merges", with_commas(tokenizer.merge_count)});
  for (const SpecialToken& special : tokenizer.specials) {
    table.add({one_line(special.name, 32),
               fmt::format("{} {}", special.id,
                           special.piece ? quoted(*special.piece) : "(not in the vocabulary)")});
  }
  for (const auto& [name, flag] : tokenizer.flags) {
    table.add({one_line(name, 32), flag ? "yes" : "no"});
  }
  return "\nTokenizer\n" + table.text();
}

std::string metadata_text(const File& file) {
  if (file.fields().all().empty()) return "";
  Table table({false, false, false});
  for (const Field& field : file.fields().all()) {
    const Value& value = field.value;
    table.add({one_line(field.key), type_text(value),
               value.is_array() ? array_text(value) : scalar_text(value)});
  }
  return fmt::format("\nMetadata ({})\n{}", file.fields().all().size(), table.text());
}

std::string tensors_text(const File& file) {
  if (file.tensors().empty()) return "";
  Table table({false, false, false, true});
  table.add({"name", "type", "shape", "size"});
  for (const Tensor& tensor : file.tensors()) {
    table.add({one_line(tensor.name), gguf::type_name(tensor.type_id), gguf::shape_text(tensor),
               tensor.bytes.empty() ? "?" : size_text(tensor.bytes.size())});
  }
  return fmt::format("\nTensors ({})\n{}", file.tensors().size(), table.text());
}

std::string templates_text(const Summary& summary) {
  std::string out;
  for (const auto& [key, text] : summary.templates) {
    const std::string_view name =
        key.size() > kTemplate.size() ? std::string_view(key).substr(kTemplate.size() + 1) : "";
    out += fmt::format("\nChat template{}{} ({} bytes)\n", name.empty() ? "" : " ",
                       one_line(name, 64), with_commas(text.size()));
    const std::string shown = printable(text);
    for (size_t at = 0; at < shown.size();) {
      const size_t end = std::min(shown.find('\n', at), shown.size());
      out += fmt::format("  {}\n", std::string_view(shown).substr(at, end - at));
      at = end + 1;
    }
  }
  return out;
}

}  // namespace

std::string inspect_report(const File& file, bool json) {
  const Summary summary = gguf::summarise(file);
  if (json) return json_report(file, summary);
  return head_text(file, summary) + problems_text(file) + types_text(summary) +
         tokenizer_text(summary) + metadata_text(file) + tensors_text(file) +
         templates_text(summary);
}

namespace {

struct InspectOptions {
  std::string path;
  bool json = false, is_security = false;
};

// Opens the file and prints the report to standard output. Returns the exit code: 0, or 1 with a
// message on standard error if the file cannot be read.
int inspect(const InspectOptions& options) {
  auto file = File::open(options.path, gguf::OpenMode::inspect);
  if (!file) {
    fmt::print(stderr, "cairn: {}\n", one_line(file.error().message, 4096));
    return command_line::kExitError;
  }
  const std::string report = options.is_security
                                 ? security_report(*file, options.path, options.json)
                                 : inspect_report(*file, options.json);
  std::fwrite(report.data(), 1, report.size(), stdout);
  return command_line::kExitFine;
}

command_line::Action add_inspect(command_line::Options& command) {
  const auto options = std::make_shared<InspectOptions>();
  const auto expected = std::make_shared<ExpectedDigests>();
  add_required_model(command, options->path);
  command.add_flag("--json", options->json, "print one JSON object");
  command.add_flag("--security", options->is_security,
                   "show what to look at before a file of a stranger is trusted: digests, why it "
                   "would be refused, what is unusual in it, its chat template");
  expected->add_to(command);
  return [options, expected]() -> Result<int> {
    CAIRN_TRY(options->path, expected->find(options->path));
    return inspect(*options);
  };
}

}  // namespace

const command_line::Command kInspectCommand = {"inspect", "show what a model file contains",
                                               add_inspect};

}  // namespace cairn::cli
