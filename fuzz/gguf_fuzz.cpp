// Fuzz target for the GGUF reader: opens the input both ways, reads every field as every type and
// every tensor's ends, asks for hyper-parameters, and writes what opened strictly again: the copy
// must open and hold the same. The tests feed it mutated files through the same entrance.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "gguf/gguf.h"
#include "gguf/hyperparameters.h"
#include "gguf/writer.h"

namespace {

using namespace cairn;  // NOLINT: a program of its own, not a header.

// Keeps reads from being optimised away.
volatile uint64_t sink = 0;

void feel(uint64_t value) {
  sink = sink + value;
}

void feel(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  feel(uint64_t(bytes.front()));
  feel(uint64_t(bytes.back()));
}

void walk_field(const gguf::Fields& fields, const gguf::Field& field) {
  feel(gguf::describe(field.value).size());
  CHECK(fields.find(field.key) != nullptr);
  const auto key = field.key;
  if (auto value = fields.get<bool>(key)) feel(*value);
  if (auto value = fields.get<int32_t>(key)) feel(uint64_t(*value));
  if (auto value = fields.get<uint32_t>(key)) feel(*value);
  if (auto value = fields.get<int64_t>(key)) feel(uint64_t(*value));
  if (auto value = fields.get<uint64_t>(key)) feel(*value);
  if (auto value = fields.get<float>(key)) feel(*value > 0);
  if (auto value = fields.get<std::string_view>(key)) feel(value->size());
  if (auto value = fields.get<gguf::Strings>(key)) {
    size_t count = 0;
    for (const std::string_view text : *value) {
      feel(std::as_bytes(std::span(text)));
      ++count;
    }
    CHECK(count == value->size());
  }
  if (auto value = fields.get<gguf::Integers>(key)) {
    for (size_t i = 0; i < value->size(); ++i) feel(uint64_t((*value)[i]));
  }
  if (auto value = fields.get<gguf::Reals>(key)) {
    for (size_t i = 0; i < value->size(); ++i) feel((*value)[i] > 0);
  }
}

void walk_metadata(const gguf::File& file) {
  auto metadata = file.metadata();
  if (!metadata) return feel(metadata.error().message.size());
  for (const gguf::CountRange& range : gguf::count_ranges()) {
    if (auto value = metadata->count(range.name)) CHECK(*value >= range.min && *value <= range.max);
    if (auto values = metadata->per_layer_or(range.name, 4, 0)) CHECK(values->size() == 4);
  }
  for (const gguf::RealRange& range : gguf::real_ranges()) {
    if (auto value = metadata->real(range.name)) CHECK(*value >= range.min && *value <= range.max);
    if (auto values = metadata->per_layer_reals(range.name, 4)) CHECK(values->size() == 4);
  }
}

void walk(const gguf::File& file) {
  for (const gguf::Field& field : file.fields().all()) walk_field(file.fields(), field);
  for (const gguf::Tensor& tensor : file.tensors()) {
    feel(tensor.bytes);
    feel(gguf::shape_text(tensor).size() + gguf::type_name(tensor.type_id).size());
    CHECK(file.find(tensor.name) != nullptr);
    if (auto weight = file.weight(tensor.name)) {
      const quant::Type& type = *(*weight)->type;
      const size_t row = quant::row_bytes(type, (*weight)->dims[0]);
      CHECK((*weight)->bytes.size() == row * size_t((*weight)->row_count()));
    }
  }
  walk_metadata(file);
}

// What the reader accepts, the writer must be able to say again.
void rewrite(const gguf::File& file) {
  gguf::Writer writer(uint32_t(file.alignment()));
  for (const gguf::Field& field : file.fields().all()) writer.add(field.key, field.value);
  for (const gguf::Tensor& tensor : file.tensors()) {
    writer.declare(tensor.name, std::span(tensor.dims).first(size_t(tensor.dim_count)),
                   tensor.type_id);
  }
  std::vector<std::byte> bytes;
  auto stream = writer.open_memory(bytes);
  CHECK(stream);
  for (const gguf::Tensor& tensor : file.tensors()) CHECK(stream->append(tensor.bytes));
  CHECK(stream->finish());
  auto copy = gguf::File::from_bytes(bytes, "copy");
  CHECK(copy);
  CHECK(copy->fields().all().size() == file.fields().all().size());
  CHECK(copy->tensors().size() == file.tensors().size());
  for (const gguf::Tensor& tensor : file.tensors()) {
    const gguf::Tensor* same = copy->find(tensor.name);
    CHECK(same != nullptr && same->bytes.size() == tensor.bytes.size());
    CHECK(std::memcmp(same->bytes.data(), tensor.bytes.data(), tensor.bytes.size()) == 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  auto inspected = gguf::File::from_bytes(bytes, "input", gguf::OpenMode::inspect);
  auto opened = gguf::File::from_bytes(bytes, "input");
  if (!inspected) {
    CHECK(!opened);  // Inspecting refuses nothing that opens.
    CHECK(!inspected.error().message.empty());
    return 0;
  }
  walk(*inspected);
  if (!opened) return 0;
  CHECK(inspected->problems().count == 0);
  walk(*opened);
  // A file has bytes beside its tensors only where nothing says what they are; copying big ones
  // would only slow the search down.
  if (size <= (size_t(1) << 16)) rewrite(*opened);
  return 0;
}
