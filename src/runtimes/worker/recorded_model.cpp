// One function for each op: its name and fields, and what it reads.
#include "runtimes/worker/recorded_model.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "device/op.h"
#include "device/op_fields.h"
#include "device/page_format.h"
#include "engine/parameter_loader.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "memory/layout.h"
#include "models/model.h"
#include "quant/quant.h"

namespace cairn::runtimes {

namespace {

constexpr size_t kPlaceAlignment = 64;
constexpr size_t kDecodedBytes = size_t(1) << 22;  // At a time, on the way into the file.
constexpr uint32_t kHalfFloats = 1;                // GGUF's number of F16.

// JSON of a field. Numbers have all the digits that they need.
std::string shown(const Rows& rows) {
  return fmt::format("[{},{},{}]", value_of_reference(rows.offset),
                     column_of_reference(rows.offset), rows.width);
}

std::string_view name_of(Activation activation) {
  switch (activation) {
    case Activation::silu:
      return "silu";
    case Activation::gelu_erf:
      return "gelu_erf";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::relu:
      return "relu";
    case Activation::sigmoid:
      return "sigmoid";
    case Activation::tanh:
      return "tanh";
    case Activation::none:
      return "none";
    default:
      return {};
  }
}

// Where the numbers that ops read come to lie, each once.
class Places {
 public:
  struct Entry {
    size_t first_byte = 0;
    const Weight* weight = nullptr;         // Or
    std::span<const std::byte> bytes = {};  // numbers as they are.
  };

  std::string matrix(const Weight& weight) {
    const bool is_half = weight.type->gguf_id == kHalfFloats;
    const size_t bytes = size_t(weight.rows) * size_t(weight.cols) * (is_half ? 2 : 4);
    const size_t first = place(weight.blocks.data(), {.weight = &weight}, bytes);
    return fmt::format("[{},\"{}\",[{},{}]]", first, is_half ? "f2" : "f4", weight.rows,
                       weight.cols);
  }
  template <class Number>
  std::string vector(const ConstantOf<Number>& numbers) {
    if (!numbers.exists()) return "null";
    const std::span<const Number> view(numbers.data(), size_t(numbers.count()));
    const size_t first = place(view.data(), {.bytes = std::as_bytes(view)}, view.size_bytes());
    return fmt::format("[{},\"f{}\",[{}]]", first, sizeof(Number), view.size());
  }

  std::span<const Entry> entries() const { return entries_; }
  size_t bytes() const { return bytes_; }

 private:
  size_t place(const void* numbers, Entry entry, size_t bytes) {
    const auto [found, is_new] = first_of_.try_emplace({numbers, bytes}, bytes_);
    if (is_new) {
      entry.first_byte = bytes_;
      entries_.push_back(entry);
      bytes_ += (bytes + kPlaceAlignment - 1) / kPlaceAlignment * kPlaceAlignment;
    }
    return found->second;
  }

  std::map<std::pair<const void*, size_t>, size_t> first_of_;
  std::vector<Entry> entries_;
  size_t bytes_ = 0;
};

// Fields of ops that workers know; what is unknown has a name in the error.
struct OpWriter {
  Places* places;

  Result<std::string> operator()(const op::Embed& o) {
    if (o.fixed_row >= 0) return unknown("a fixed row of a table");
    return fmt::format(R"(["Embed",{{"table":{},"out":{},"scale":{},"by_position":{}}}])",
                       places->matrix(*o.table), shown(o.out), o.scale, o.by_position);
  }
  Result<std::string> operator()(const op::MatMul& o) {
    return fmt::format(R"(["MatMul",{{"weight":{},"x":{},"out":{},"bias":{},"scale":{}}}])",
                       places->matrix(*o.weight), shown(o.x), shown(o.out), places->vector(o.bias),
                       o.weight->scale_of(0));
  }
  Result<std::string> operator()(const op::RmsNorm& o) { return norm("RmsNorm", o, {}); }
  Result<std::string> operator()(const op::LayerNorm& o) { return norm("LayerNorm", o, o.bias); }
  template <class Norm>
  std::string norm(std::string_view name, const Norm& o, const Constant& bias) {
    return fmt::format(R"(["{}",{{"x":{},"out":{},"gain":{},"bias":{},"group":{},)"
                       R"("gain_per_element":{},"epsilon":{}}}])",
                       name, shown(o.x), shown(o.out), places->vector(o.gain), places->vector(bias),
                       o.group, o.gain_per_element, o.epsilon);
  }
  Result<std::string> operator()(const op::Add& o) {
    return fmt::format(R"(["Add",{{"a":{},"b":{},"out":{},"scale":{}}}])", shown(o.a), shown(o.b),
                       shown(o.out), o.scale);
  }
  Result<std::string> operator()(const op::Scale& o) {
    return fmt::format(R"(["Scale",{{"x":{},"out":{},"factor":{},"of_columns":{}}}])", shown(o.x),
                       shown(o.out), o.factor, places->vector(o.of_columns));
  }
  Result<std::string> operator()(const op::Clamp& o) {
    return fmt::format(R"(["Clamp",{{"x":{},"out":{},"limit":{}}}])", shown(o.x), shown(o.out),
                       o.limit);
  }
  Result<std::string> operator()(const op::Activate& o) {
    if (name_of(o.activation).empty()) return unknown("this activation");
    return fmt::format(R"(["Activate",{{"x":{},"out":{},"activation":"{}"}}])", shown(o.x),
                       shown(o.out), name_of(o.activation));
  }
  Result<std::string> operator()(const op::Gate& o) {
    if (name_of(o.activation).empty()) return unknown("this activation of a gate");
    return fmt::format(R"(["Gate",{{"gate":{},"x":{},"out":{},"activation":"{}","run":{}}}])",
                       shown(o.gate), shown(o.x), shown(o.out), name_of(o.activation), o.run);
  }
  Result<std::string> operator()(const op::RopeTable& o) {
    return fmt::format(R"(["RopeTable",{{"frequencies":{},"magnitude":{},"out":{}}}])",
                       places->vector(o.frequencies), o.magnitude, shown(o.out));
  }
  Result<std::string> operator()(const op::Rope& o) {
    return fmt::format(
        R"(["Rope",{{"x":{},"table":{},"head_dim":{},"pair_count":{},"halves":{}}}])", shown(o.x),
        shown(o.table), o.head_dim, o.pair_count, o.style == RopeStyle::halves);
  }
  Result<std::string> operator()(const op::ScaleByPosition& o) {
    return fmt::format(
        R"(["ScaleByPosition",{{"x":{},"factor":{},"original_context":{},"offset":{}}}])",
        shown(o.x), o.factor, o.original_context, o.offset);
  }
  Result<std::string> operator()(const op::StoreKv& o) {
    return fmt::format(R"(["StoreKv",{{"plane":{},"k":{},"v":{}}}])", o.plane, shown(o.k),
                       o.v.exists() ? shown(o.v) : "null");
  }
  Result<std::string> operator()(const op::Attend& o) {
    if (!o.is_causal) return unknown("attention to later tokens");
    if (o.sinks.exists()) return unknown("attention sinks");
    return fmt::format(
        R"(["Attend",{{"q":{},"out":{},"plane":{},"head_count":{},"scale":{},"softcap":{},)"
        R"("window":{},"chunked":{},"slopes":{}}}])",
        shown(o.q), shown(o.out), o.plane, o.head_count, o.scale, o.softcap, o.window, o.chunked,
        places->vector(o.slopes));
  }
  Result<std::string> operator()(const op::GatherOutputs& o) {
    return fmt::format(R"(["GatherOutputs",{{"x":{},"out":{}}}])", shown(o.x), shown(o.out));
  }
  Result<std::string> operator()(const op::Quantize&) { return std::string(); }
  template <class Other>
  Result<std::string> operator()(const Other&) {
    if constexpr (kIsOneOf<Other, op::Route, op::ExpertMatMul, op::ExpertScale, op::ExpertSum>) {
      return unknown("experts");
    } else if constexpr (kIsOneOf<Other, op::ShortConv, op::MambaScan, op::Mamba2Scan,
                                  op::GatedDeltaScan, op::ChannelDeltaScan>) {
      return unknown("recurrent layers");
    } else {
      return unknown("parts of columns or streams");
    }
  }

  static Error unknown(std::string_view what) {
    return fail(ErrorCode::unsupported, "the model has {}, which other runtimes do not compute",
                what);
  }
};

// A model whose step is recorded; what the ops point to lives as long as this.
struct Recorded {
  std::unique_ptr<models::Model> model;
  std::vector<std::vector<float>> vectors;
  memory::Layout layout;
  std::unique_ptr<Graph> graph;
  Places places;
  std::string ops;
};

Result<std::unique_ptr<Recorded>> record(const gguf::File& file) {
  auto made = std::make_unique<Recorded>();
  CAIRN_TRY(const gguf::Metadata meta, file.metadata());
  CAIRN_TRY(const models::Architecture* architecture,
            models::find_architecture(meta.architecture()));
  CAIRN_TRY(made->model, architecture->create(meta));
  models::Model& model = *made->model;
  if (!model.makes_text()) return OpWriter::unknown("no text to make");
  ParameterLoader loader(&file);
  CAIRN_TRY(model.visit_parameters(loader));
  made->vectors = std::move(loader).take_vectors();
  std::vector<std::vector<State>> states;
  for (int32_t layer = 0; layer < model.size().layer_count; ++layer) {
    states.push_back(model.layer_states(layer));
  }
  // Of the layout, only the planes' shapes are of interest.
  const PageFormat format{.head_bytes = [](KvType, int32_t dim) { return size_t(dim); }};
  made->layout = memory::Layout::make(states, format, KvType::f32, KvType::f32, model.size().width);
  made->graph = std::make_unique<Graph>(made->layout, GraphOptions{.keeps_plain_rows = true});
  (void)model.forward(*made->graph);
  OpWriter writer{&made->places};
  for (const Op& op : made->graph->recorded()) {
    CAIRN_TRY(const std::string text, std::visit(writer, op));
    if (text.empty()) continue;
    if (!made->ops.empty()) made->ops += ',';
    made->ops += text;
  }
  return made;
}

Error file_error(const char* verb) {
  return fail(ErrorCode::io, "a worker's weights: cannot {}: {}", verb, std::strerror(errno));
}

Status write_at(const Descriptor& file, std::span<const std::byte> bytes, size_t offset) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file.number(), bytes.data(), bytes.size(), off_t(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return file_error("be written");
    bytes = bytes.subspan(size_t(count));
    offset += size_t(count);
  }
  return Ok{};
}

Status write_weight(const Descriptor& file, const Weight& weight, size_t offset) {
  if (weight.type->gguf_id == kHalfFloats) return write_at(file, weight.blocks, offset);
  const size_t row_bytes = size_t(weight.cols) * sizeof(float);
  const int32_t step = int32_t(std::max<size_t>(1, kDecodedBytes / row_bytes));
  std::vector<float> decoded;
  for (int32_t first = 0; first < weight.rows; first += step) {
    const int32_t count = std::min(step, weight.rows - first);
    decoded.resize(size_t(count) * size_t(weight.cols));
    const size_t blocks_bytes = size_t(count) * weight.row_bytes();
    quant::decode_row(*weight.type, {weight.row(0, first), blocks_bytes}, decoded);
    CAIRN_TRY(
        write_at(file, std::as_bytes(std::span(decoded)), offset + size_t(first) * row_bytes));
  }
  return Ok{};
}

// Written once, and never changed or cut by whoever has it.
Result<Descriptor> write_weights(const Places& places) {
  Descriptor file(::memfd_create("cairn-weights", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return file_error("be made");
  if (::ftruncate(file.number(), off_t(places.bytes())) != 0) return file_error("have their size");
  for (const Places::Entry& entry : places.entries()) {
    CAIRN_TRY(entry.weight != nullptr ? write_weight(file, *entry.weight, entry.first_byte)
                                      : write_at(file, entry.bytes, entry.first_byte));
  }
  const int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (::fcntl(file.number(), F_ADD_SEALS, seals) != 0) return file_error("be sealed");
  return file;
}

}  // namespace

Status check_recordable(const gguf::File& file) {
  CAIRN_TRY(record(file));
  return Ok{};
}

Result<RecordedModel> record_model(const gguf::File& file) {
  CAIRN_TRY(const std::unique_ptr<Recorded> recorded, record(file));
  RecordedModel made;
  CAIRN_TRY(made.weights, write_weights(recorded->places));
  made.weights_bytes = recorded->places.bytes();
  made.vocabulary_count = recorded->model->size().vocabulary_count;
  made.context_tokens = recorded->model->size().context_length;
  std::string planes;
  for (const KvPlane& plane : recorded->layout.kv_planes) {
    planes += fmt::format("{}[{},{},{},{}]", planes.empty() ? "" : ",", plane.kv_head_count,
                          plane.key_dim, plane.value_dim, plane.values_in_keys);
  }
  made.json = fmt::format(R"("planes":[{}],"ops":[{}],"weights_bytes":{})", planes, recorded->ops,
                          made.weights_bytes);
  return made;
}

}  // namespace cairn::runtimes
