// Some dozens of keys: looking at each is as fast as an index.
#include "convert/key_values.h"

#include <span>

namespace cairn::convert {
namespace {

struct Put {
  gguf::Writer& writer;
  const std::string& key;

  void operator()(bool value) const { writer.add(key, value); }
  void operator()(uint32_t value) const { writer.add(key, value); }
  void operator()(int32_t value) const { writer.add(key, value); }
  void operator()(float value) const { writer.add(key, value); }
  void operator()(const std::string& value) const { writer.add(key, std::string_view(value)); }
  void operator()(const std::vector<bool>& values) const { writer.add_booleans(key, values); }
  void operator()(const std::vector<uint8_t>& values) const {
    writer.add_array<uint8_t>(key, values);
  }
  void operator()(const std::vector<int32_t>& values) const {
    writer.add_array<int32_t>(key, values);
  }
  void operator()(const std::vector<float>& values) const { writer.add_array<float>(key, values); }
  void operator()(const std::vector<std::string>& values) const {
    writer.add_array(key, std::span<const std::string>(values));
  }
};

}  // namespace

void KeyValues::set(std::string_view key, MetaValue value) {
  for (auto& [known, old] : all_) {
    if (known != key) continue;
    old = std::move(value);
    return;
  }
  all_.emplace_back(std::string(key), std::move(value));
}

void KeyValues::erase(std::string_view key) {
  std::erase_if(all_, [&](const auto& row) { return row.first == key; });
}

const MetaValue* KeyValues::find(std::string_view key) const {
  for (const auto& [known, value] : all_) {
    if (known == key) return &value;
  }
  return nullptr;
}

void KeyValues::write_to(gguf::Writer& writer) const {
  for (const auto& [key, value] : all_) std::visit(Put{writer, key}, value);
}

}  // namespace cairn::convert
