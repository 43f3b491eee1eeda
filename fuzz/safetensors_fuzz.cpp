// Files of models that are to be converted: the first byte chooses tensors or the configuration.
// A tensor that is handed out lies in the file, and none on another.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "convert/config.h"
#include "convert/safetensors.h"

using namespace cairn;

namespace {

void read_tensors(std::span<const std::byte> file) {
  auto tensors = convert::read_safetensors(file, "model.safetensors", 0);
  if (!tensors) {
    CHECK(!tensors.error().message.empty());
    return;
  }
  size_t bytes = 0;
  for (const convert::SourceTensor& tensor : *tensors) {
    bytes += tensor.bytes.size();
    if (tensor.bytes.empty()) continue;
    CHECK(tensor.bytes.data() >= file.data());
    CHECK(tensor.bytes.data() + tensor.bytes.size() <= file.data() + file.size());
  }
  CHECK(bytes <= file.size());
}

void read_config(std::string_view text) {
  auto json = convert::parse_json(text);
  if (!json) return;
  auto config = convert::Config::from_json(std::move(json).value());
  if (!config) return;
  for (const char* key : {"hidden_size", "num_hidden_layers", "rope_theta", "vocab_size"}) {
    if (auto count = config->count_if_set({key}); count && *count) CHECK(**count >= 0);
    (void)config->number(key);
    (void)config->positive(key);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // A copy of its own, so that reading past its end is seen.
  const std::vector<uint8_t> rest(data + 1, data + size);
  if (data[0] % 2 == 0) {
    read_tensors(std::as_bytes(std::span(rest)));
  } else {
    read_config({reinterpret_cast<const char*>(rest.data()), rest.size()});
  }
  return 0;
}
