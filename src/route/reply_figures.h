// What a reply says of how it was made, found in the bytes that pass: `memory` and `timings`, which
// stand at its end in all APIs. Knows neither the forms of replies nor where they go. Not
// thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "route/policy.h"

namespace cairn::route {

class ReplyReader {
 public:
  // The next bytes of the body.
  void add(std::string_view bytes);
  // Of what has passed; nothing where it tells nothing.
  std::optional<ReplyFigures> figures() const;
  // The beginning, as far as it is kept.
  std::string_view begin() const { return begin_; }

 private:
  static constexpr size_t kBeginBytes = 4096, kEndBytes = 16384;

  std::string begin_, end_;
};

}  // namespace cairn::route
