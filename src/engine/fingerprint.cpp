// The digest of a list of fields, each of a fixed size or with its size before it, so that no two
// lists are the same bytes. The first field is the version of this list.
#include "engine/fingerprint.h"

#include <bit>
#include <cstring>

namespace cairn {
namespace {

// Members of an enumeration by number here: these numbers are part of the fingerprint.
uint64_t number_of(KvType type) {
  switch (type) {
    case KvType::f32:
      return 0;
    case KvType::f16:
      return 1;
    case KvType::bf16:
      return 2;
    case KvType::q8_0:
      return 3;
    case KvType::q4_0:
      return 4;
  }
  return ~uint64_t(0);
}

void add_text(std::string_view text, Sha256& sha) {
  sha.add(uint64_t(text.size())).add(text);
}

}  // namespace

Fingerprint Fingerprint::of(const BitSources& sources) {
  Sha256 sha;
  add_text("cairn fingerprint 1", sha);
  sha.add(std::as_bytes(std::span(sources.model)));
  add_text(name(sources.numerics), sha);
  add_text(sources.numerics == Numerics::exact_1 ? std::string_view() : sources.isa, sha);
  // What was computed while products rounded by the number of their rows is not used any more.
  if (sources.numerics == Numerics::fast_1) add_text("rounded by role", sha);
  sha.add(number_of(sources.key_type)).add(number_of(sources.value_type));
  sha.add(uint64_t(sources.adapters.size()));
  for (const AdapterSource& source : sources.adapters) {
    sha.add(std::as_bytes(std::span(source.adapter)));
    sha.add(uint64_t(std::bit_cast<uint32_t>(source.scale)));
  }
  // Behind all else, so that the model itself has the fingerprint that it always had.
  if (sources.program != nullptr && !sources.program->is_default()) {
    add_text("program", sha);
    sha.add(uint64_t(sources.program->skipped_layers.size()));
    for (const int32_t layer : sources.program->skipped_layers) sha.add(uint64_t(layer));
    sha.add(uint64_t(sources.program->expert_used_count));
  }
  return Fingerprint(sha.finish());
}

memory::Variant Fingerprint::variant() const {
  uint64_t first = 0;
  std::memcpy(&first, digest_.data(), sizeof first);
  return memory::Variant(first == 0 ? 1 : first);
}

}  // namespace cairn
