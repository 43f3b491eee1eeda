// Names and numbers of the kinds of pooling.
#include "engine/pooling.h"

#include <fmt/format.h>

#include <iterator>

namespace cairn {

namespace {

constexpr std::string_view kNames[] = {"none", "mean", "cls", "last", "rank"};

}  // namespace

std::string_view name(Pooling pooling) {
  return kNames[size_t(pooling)];
}

Result<Pooling> parse_pooling(std::string_view option, std::string_view text) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == text) return Pooling(i);
  }
  return fail(ErrorCode::invalid_argument, "{}: expected one of {}, found \"{}\"", option,
              fmt::join(kNames, ", "), text);
}

Result<std::optional<Pooling>> pooling_of(const gguf::File& file) {
  CAIRN_TRY(const gguf::Metadata meta, file.metadata());
  if (!meta.has("pooling_type")) return std::optional<Pooling>();
  CAIRN_TRY(const int32_t number, meta.count("pooling_type"));
  if (number >= int32_t(std::size(kNames))) {
    return fail(ErrorCode::unsupported, "{}: expected 0 to {}, found {}", meta.key("pooling_type"),
                std::size(kNames) - 1, number);
  }
  return std::optional(Pooling(number));
}

}  // namespace cairn
