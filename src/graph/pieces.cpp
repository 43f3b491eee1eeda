// The list of ops that can be computed in pieces. All others are computed as a whole.
#include "graph/pieces.h"

#include <initializer_list>
#include <variant>

namespace cairn {

namespace {

constexpr int32_t kBlockAlignment = 32;  // Numbers that are quantized together.

// Pieces of `shape`'s rows and columns; whose addresses are listed has the same columns.
PieceShape columns(const Rows& shape, int32_t alignment,
                   std::initializer_list<const void*> aligned) {
  return {.exists = true,
          .set = shape.set,
          .width = shape.width,
          .alignment = shape.width % alignment == 0 ? alignment : shape.width,
          .aligned = aligned};
}

PieceShape whole_rows(const Rows& shape) {
  return {.exists = true, .set = shape.set, .width = shape.width, .alignment = shape.width};
}

PieceShape producer(const Rows& out, int32_t alignment) {
  PieceShape shape = columns(out, alignment, {&out});
  shape.is_producer = true;
  return shape;
}

struct Shapes {
  const PieceAlignment& alignment;

  template <class T>
  PieceShape operator()(const T&) const {
    return {};
  }
  PieceShape operator()(const op::Embed& o) const { return whole_rows(o.out); }
  PieceShape operator()(const op::RopeTable& o) const { return whole_rows(o.out); }
  PieceShape operator()(const op::PickColumns& o) const { return whole_rows(o.out); }
  PieceShape operator()(const op::Route& o) const { return whole_rows(o.logits); }
  PieceShape operator()(const op::ExpertScale& o) const { return whole_rows(o.out); }
  PieceShape operator()(const op::ExpertSum& o) const { return whole_rows(o.x); }
  PieceShape operator()(const op::MixStreams& o) const { return whole_rows(o.out); }
  PieceShape operator()(const op::MatchMagnitude& o) const { return whole_rows(o.out); }
  PieceShape operator()(const op::GaussianTopk& o) const { return whole_rows(o.out); }

  PieceShape operator()(const op::Quantize& o) const {
    return columns(o.x, kBlockAlignment, {&o.x, &o.out});
  }
  PieceShape operator()(const op::RmsNorm& o) const {
    return columns(o.out, o.group, {&o.x, &o.out});
  }
  PieceShape operator()(const op::LayerNorm& o) const {
    return columns(o.out, o.group, {&o.x, &o.out});
  }
  PieceShape operator()(const op::Add& o) const {
    return columns(o.out, alignment.vector, {&o.a, &o.b, &o.out});
  }
  PieceShape operator()(const op::Scale& o) const {
    return columns(o.out, alignment.vector, {&o.x, &o.out});
  }
  PieceShape operator()(const op::Activate& o) const {
    return columns(o.out, alignment.vector, {&o.x, &o.out});
  }
  PieceShape operator()(const op::Gate& o) const {
    if (o.run != 0) return whole_rows(o.out);
    return columns(o.out, alignment.vector, {&o.gate, &o.x, &o.out});
  }
  PieceShape operator()(const op::Rope& o) const { return columns(o.x, o.head_dim, {&o.x}); }
  PieceShape operator()(const op::ScaleByPosition& o) const {
    return columns(o.x, alignment.vector, {&o.x});
  }
  PieceShape operator()(const op::StoreKv& o) const {
    if (o.kv_head_count == 0 || o.k.width != o.v.width) return whole_rows(o.k);
    return columns(o.k, o.k.width / o.kv_head_count, {&o.k, &o.v});
  }

  PieceShape operator()(const op::MatMul& o) const { return producer(o.out, alignment.product); }
  // Behind a product its pieces would be small: its weights and tail lie in rows far apart, and
  // are read in long pieces or slowly.
  PieceShape operator()(const op::ShortConv& o) const { return producer(o.out, alignment.vector); }
  PieceShape operator()(const op::MambaScan& o) const { return producer(o.out, alignment.vector); }
  PieceShape operator()(const op::Mamba2Scan& o) const { return producer(o.out, o.head_dim); }
  PieceShape operator()(const op::GatedDeltaScan& o) const { return producer(o.out, o.value_dim); }
  PieceShape operator()(const op::ChannelDeltaScan& o) const {
    return producer(o.out, o.value_dim);
  }
};

}  // namespace

PieceShape piece_shape(const Op& op, const PieceAlignment& alignment) {
  return std::visit(Shapes{alignment}, op);
}

}  // namespace cairn
