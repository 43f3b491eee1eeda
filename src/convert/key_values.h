// The metadata of a GGUF file to be, in order. A key that is set again keeps its place and takes
// the new value: so the order is that of the usual converter. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gguf/writer.h"

namespace cairn::convert {

using MetaValue = std::variant<bool, uint32_t, int32_t, float, std::string, std::vector<bool>,
                               std::vector<uint8_t>, std::vector<int32_t>, std::vector<float>,
                               std::vector<std::string>>;

class KeyValues {
 public:
  void set(std::string_view key, MetaValue value);
  void erase(std::string_view key);
  const std::vector<std::pair<std::string, MetaValue>>& all() const { return all_; }
  const MetaValue* find(std::string_view key) const;
  void write_to(gguf::Writer& writer) const;

 private:
  std::vector<std::pair<std::string, MetaValue>> all_;
};

}  // namespace cairn::convert
