// A part of device/op_fields.h: the ops of device/op_recurrent.h. Every op that updates a recurrent
// state calls write_state(); from these ops graph/replay.h finds what must be logged.
#pragma once

#include "device/op_recurrent.h"

namespace cairn {

template <class Visitor>
void visit_fields(op::ShortConv& o, Visitor& visit) {
  visit.read(o.x);
  visit.read_constant(o.weight);
  visit.read_constant(o.bias);
  visit.write_state(o.state);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::MambaScan& o, Visitor& visit) {
  visit.read(o.x);
  visit.read(o.b);
  visit.read(o.c);
  visit.read(o.dt);
  visit.read_constant(o.a);
  visit.read_constant(o.d);
  visit.write_state(o.state);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::Mamba2Scan& o, Visitor& visit) {
  visit.read(o.x);
  visit.read(o.b);
  visit.read(o.c);
  visit.read(o.dt);
  visit.read_constant(o.a);
  visit.read_constant(o.d);
  visit.read_constant(o.dt_bias);
  visit.write_state(o.state);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::GatedDeltaScan& o, Visitor& visit) {
  visit.read(o.q);
  visit.read(o.k);
  visit.read(o.v);
  visit.read(o.dt);
  visit.read(o.rate);
  visit.read_constant(o.a);
  visit.read_constant(o.dt_bias);
  visit.write_state(o.state);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::ChannelDeltaScan& o, Visitor& visit) {
  visit.read(o.q);
  visit.read(o.k);
  visit.read(o.log_decay);
  visit.read(o.v);
  visit.read(o.rate);
  visit.read(o.asked);
  visit.read(o.erased);
  visit.read_constant(o.a);
  visit.write_state(o.state);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::ScaleByDots& o, Visitor& visit) {
  visit.read(o.a);
  visit.read(o.b);
  visit.read(o.x);
  visit.read_constant(o.gain);
  visit.write(o.out);
}

template <class Visitor>
void visit_fields(op::StoreLog& o, Visitor& visit) {
  visit.read(o.x);
}

template <class Visitor>
void visit_fields(op::LoadLog& o, Visitor& visit) {
  visit.write(o.out);
}

}  // namespace cairn
