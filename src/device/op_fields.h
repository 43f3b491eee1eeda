// The rows that each op reads, writes or changes in place, and what else it touches: the one list
// of dependencies, from which plans are made. A visitor has read(), write() and change() for Rows&
// and QuantizedRows&, read_plane() and write_plane() for the index of a key/value plane,
// write_state() for that of a recurrent state, read_weights() for a matrix that it multiplies or
// looks up, and read_constant() for ConstantOf<…>&. Rows and constants are visited where they do
// not exist, too.
#pragma once

#include <type_traits>

#include "device/op.h"
#include "device/op_recurrent_fields.h"

namespace cairn {

template <class Op, class... Others>
constexpr bool kIsOneOf = (std::is_same_v<Op, Others> || ...);

// The ops that only read rows x and write rows out.
template <class Op, class Visitor>
requires kIsOneOf<Op, op::Quantize, op::Clamp, op::Activate, op::GaussianTopk, op::GatherOutputs>
void visit_fields(Op& o, Visitor& visit) {
  visit.read(o.x);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::RmsNorm& o, Visitor& visit) {
  visit.read(o.x);
  visit.read_constant(o.gain);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::LayerNorm& o, Visitor& visit) {
  visit.read(o.x);
  visit.read_constant(o.gain);
  visit.read_constant(o.bias);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::Scale& o, Visitor& visit) {
  visit.read(o.x);
  visit.read_constant(o.of_columns);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::Embed& o, Visitor& visit) {
  visit.read_weights(*o.table);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::Given& o, Visitor& visit) {
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::MatMul& o, Visitor& visit) {
  visit.read_weights(*o.weight);
  visit.read(o.x);
  visit.read(o.quantized);
  visit.read_constant(o.bias);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::Add& o, Visitor& visit) {
  visit.read(o.a);
  visit.read(o.b);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::Gate& o, Visitor& visit) {
  visit.read(o.gate);
  visit.read(o.x);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::RopeTable& o, Visitor& visit) {
  visit.read_constant(o.frequencies);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::Rope& o, Visitor& visit) {
  visit.change(o.x);
  visit.read(o.table);
}

template <class Visitor>
void visit_fields(op::ScaleByPosition& o, Visitor& visit) {
  visit.change(o.x);
}

template <class Visitor>
void visit_fields(op::StoreKv& o, Visitor& visit) {
  visit.read(o.k);
  visit.read(o.v);
  visit.write_plane(o.plane);
}

template <class Visitor>
void visit_fields(op::Attend& o, Visitor& visit) {
  visit.read(o.q);
  visit.read_plane(o.plane);
  visit.read_constant(o.sinks);
  visit.read_constant(o.slopes);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::PickColumns& o, Visitor& visit) {
  visit.read(o.x);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::JoinColumns& o, Visitor& visit) {
  visit.read(o.a);
  visit.read(o.b);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::Route& o, Visitor& visit) {
  visit.read(o.logits);
  visit.read_constant(o.selection_bias);
  visit.write(o.chosen);
  visit.write(o.weights);
}

template <class Visitor>
void visit_fields(op::ExpertMatMul& o, Visitor& visit) {
  visit.read_weights(*o.weight);
  visit.read(o.x);
  visit.read(o.quantized);
  visit.read(o.chosen);
  visit.read_constant(o.bias);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::ExpertScale& o, Visitor& visit) {
  visit.read(o.x);
  visit.read(o.weights);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::ExpertSum& o, Visitor& visit) {
  visit.read(o.x);
  visit.read(o.weights);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::MixStreams& o, Visitor& visit) {
  visit.read(o.a);
  visit.read(o.b);
  visit.read(o.coefficients);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::MatchMagnitude& o, Visitor& visit) {
  visit.read(o.first);
  visit.read(o.x);
  visit.write(o.out);
}

}  // namespace cairn
