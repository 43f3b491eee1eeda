// Restricts an expression to texts of some lengths: a schema's pattern together with minLength and
// maxLength. Lengths are counted in units, which are nodes that stand for one character each,
// however it is spelled. Knows no syntax. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "grammar/expression.h"

namespace cairn::grammar {

struct LengthRange {
  int64_t min = 0;
  int64_t max = kUnbounded;  // kUnbounded and more: there is none.
};

class Lengths {
 public:
  // REQUIRES: `units` are nodes of `expressions`; the nodes that they are made of, and calls, stand
  // nowhere else in what is asked about.
  Lengths(Expressions& expressions, const std::vector<Node>& units);

  // `node` restricted to texts of these lengths. Errors: unsupported if the expression would become
  // too large.
  Result<Node> only(Node node, LengthRange wanted);

 private:
  LengthRange range_of(Node node);
  LengthRange measure(const Expressions::Item& item);
  std::optional<Node> fit(Node node, LengthRange wanted);
  std::optional<Node> fit_parts(Node sequence, size_t first, LengthRange wanted);
  std::optional<Node> fit_repeat(Node body, int32_t min, int32_t max, LengthRange wanted);
  // The ways to share `wanted` between two neighbours of these ranges.
  template <class Left, class Right>
  std::optional<Node> split(LengthRange left, LengthRange right, LengthRange wanted,
                            const Left& fit_left, const Right& fit_right);
  std::optional<Node> remember(std::tuple<uint32_t, int64_t, int64_t, int64_t, int64_t> key,
                               std::optional<Node> node);
  Node nothing() { return expressions_.choice(std::span<const Node>()); }

  Expressions& expressions_;
  std::map<Node, LengthRange> ranges_;
  std::map<std::tuple<uint32_t, int64_t, int64_t, int64_t, int64_t>, Node> known_;
  size_t way_count_ = 0;
};

}  // namespace cairn::grammar
