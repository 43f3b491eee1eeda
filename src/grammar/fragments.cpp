// Invariant of building: what is built between two states adds only edges out of the first and into
// the second, so that neither loops nor alternatives run into each other. Nesting is bounded where
// expressions are made; building still keeps its own stack.
#include "grammar/fragments.h"

#include <algorithm>

namespace cairn::grammar {

namespace {

using Kind = Expressions::Kind;
using EdgeKind = Fragments::EdgeKind;

constexpr int64_t kInlineSizeMax = 32;     // States of a rule that is written out.
constexpr int64_t kUnrolledSizeMax = 256;  // States of a repetition that is written out.
constexpr int64_t kHuge = int64_t(1) << 40;

class Maker {
 public:
  Maker(const Expressions& expressions, const Limits& limits, int64_t& work)
      : expressions_(expressions), limits_(limits), work_(work) {}

  Result<Fragments> make(Rule root) {
    find_sizes();
    pieces_of_rules_.assign(expressions_.rule_count(), kNone);
    piece_of(root);
    for (size_t i = 0; i < out_.pieces.size(); ++i) {
      out_.piece_begin.push_back(uint32_t(out_.first_edge.size()));
      const uint32_t start = new_state(), end = new_state();
      out_.pieces[i].start = start;
      out_.pieces[i].end = end;
      name_ = out_.pieces[i].name;
      CAIRN_TRY(build(out_.pieces[i].node, start, end));
    }
    out_.piece_begin.push_back(uint32_t(out_.first_edge.size()));
    return std::move(out_);
  }

 private:
  struct Task {
    Node node;
    uint32_t from, to;
  };

  // The states that each node takes, roughly, with small rules written out. Rules whose callees
  // are all known come first; what is left over is recursive, or calls what is, and stays a call.
  void find_sizes() {
    const size_t rule_count = expressions_.rule_count();
    std::vector<std::vector<uint32_t>> callers(rule_count);
    std::vector<uint32_t> waits_for(rule_count, 0);
    std::vector<std::vector<Node>> nodes = nodes_of_rules();
    for (uint32_t rule = 0; rule < rule_count; ++rule) {
      for (const Node node : nodes[rule]) {
        const Expressions::Item& item = expressions_.item(node);
        if (item.kind != Kind::call) continue;
        callers[item.first].push_back(rule);
        ++waits_for[rule];
      }
    }
    is_inlined_.assign(rule_count, false);
    rule_sizes_.assign(rule_count, 1);
    sizes_.assign(expressions_.size(), 1);
    std::vector<uint32_t> ready;
    std::vector<bool> is_done(rule_count, false);
    for (uint32_t rule = 0; rule < rule_count; ++rule) {
      if (waits_for[rule] == 0) ready.push_back(rule);
    }
    while (!ready.empty()) {
      const uint32_t rule = ready.back();
      ready.pop_back();
      is_done[rule] = true;
      for (const Node node : nodes[rule]) sizes_[size_t(node)] = size_of(expressions_.item(node));
      if (!nodes[rule].empty()) {
        rule_sizes_[rule] = sizes_[size_t(nodes[rule].back())];
        is_inlined_[rule] = rule_sizes_[rule] <= kInlineSizeMax;
      }
      for (const uint32_t caller : callers[rule]) {
        if (--waits_for[caller] == 0) ready.push_back(caller);
      }
    }
    for (uint32_t rule = 0; rule < rule_count; ++rule) {
      if (is_done[rule]) continue;
      for (const Node node : nodes[rule]) sizes_[size_t(node)] = size_of(expressions_.item(node));
    }
  }

  // The nodes of each rule, what they are made of first.
  std::vector<std::vector<Node>> nodes_of_rules() const {
    std::vector<std::vector<Node>> nodes(expressions_.rule_count());
    std::vector<uint32_t> seen_by(expressions_.size(), kNone);
    std::vector<Node> waiting;
    for (uint32_t rule = 0; rule < nodes.size(); ++rule) {
      if (!expressions_.is_defined(Rule(rule))) continue;
      waiting.assign(1, expressions_.body(Rule(rule)));
      while (!waiting.empty()) {
        const Node node = waiting.back();
        waiting.pop_back();
        if (seen_by[size_t(node)] == rule) continue;
        seen_by[size_t(node)] = rule;
        nodes[rule].push_back(node);
        const Expressions::Item& item = expressions_.item(node);
        if (!has_children(item)) continue;
        const auto children = expressions_.children_of(item);
        waiting.insert(waiting.end(), children.begin(), children.end());
      }
      std::sort(nodes[rule].begin(), nodes[rule].end());
    }
    return nodes;
  }

  static bool has_children(const Expressions::Item& item) {
    return item.kind == Kind::sequence || item.kind == Kind::choice || item.kind == Kind::repeat;
  }

  int64_t size_of(const Expressions::Item& item) const {
    switch (item.kind) {
      case Kind::text:
        return item.count;
      case Kind::characters:
        return 1 + 2 * int64_t(item.count);
      case Kind::call:
        return is_inlined_[item.first] ? rule_sizes_[item.first] : 1;
      case Kind::sequence:
      case Kind::choice: {
        int64_t sum = 1;
        for (const Node child : expressions_.children_of(item)) sum += sizes_[size_t(child)];
        return std::min(sum, kHuge);
      }
      case Kind::repeat: {
        const int64_t body = sizes_[size_t(expressions_.children_of(item)[0])];
        return is_unrolled(item) ? std::min(kHuge, body * copies(item) + 2) : 2;
      }
      default:
        return 1;
    }
  }

  static int64_t copies(const Expressions::Item& repeat) {
    return repeat.max == kUnbounded ? repeat.min + 1 : repeat.max;
  }
  bool is_unrolled(const Expressions::Item& repeat) const {
    if (copies(repeat) <= 1) return true;
    const int64_t body = sizes_[size_t(expressions_.children_of(repeat)[0])];
    return body <= kUnrolledSizeMax / copies(repeat);
  }

  uint32_t new_state() {
    out_.first_edge.push_back(kNone);
    return uint32_t(out_.first_edge.size() - 1);
  }
  void connect(uint32_t from, Fragments::Edge edge) {
    edge.next = out_.first_edge[from];
    out_.first_edge[from] = uint32_t(out_.edges.size());
    out_.edges.push_back(edge);
  }
  void connect(uint32_t from, uint32_t to) {
    connect(from, {.kind = EdgeKind::nothing, .target = to});
  }

  uint32_t piece_of(Rule rule) {
    uint32_t& piece = pieces_of_rules_[size_t(rule)];
    if (piece == kNone) {
      piece = uint32_t(out_.pieces.size());
      out_.pieces.push_back({.node = expressions_.body(rule), .name = uint32_t(rule)});
    }
    return piece;
  }

  Status build(Node root, uint32_t from, uint32_t to) {
    std::vector<Task> tasks = {{root, from, to}};
    while (!tasks.empty()) {
      const Task task = tasks.back();
      tasks.pop_back();
      if (--work_ < 0 || out_.first_edge.size() > limits_.state_count ||
          out_.edges.size() > limits_.edge_count || tasks.size() > limits_.edge_count) {
        return fail(ErrorCode::no_room,
                    "grammar: expected an automaton of at most {} states, found a larger one",
                    limits_.state_count);
      }
      build_one(task, tasks);
    }
    return Ok{};
  }

  void build_one(const Task& task, std::vector<Task>& tasks) {
    const Expressions::Item& item = expressions_.item(task.node);
    switch (item.kind) {
      case Kind::empty:
        return connect(task.from, task.to);
      case Kind::text:
        return build_text(expressions_.text_of(item), task);
      case Kind::characters:
        return build_characters(item, task);
      case Kind::sequence: {
        const auto children = expressions_.children_of(item);
        uint32_t from = task.from;
        for (size_t i = 0; i < children.size(); ++i) {
          const uint32_t to = i + 1 == children.size() ? task.to : new_state();
          tasks.push_back({children[i], from, to});
          from = to;
        }
        return;
      }
      case Kind::choice:
        for (const Node child : expressions_.children_of(item)) {
          tasks.push_back({child, task.from, task.to});
        }
        return;
      case Kind::repeat:
        return build_repeat(item, task, tasks);
      case Kind::call: {
        const auto rule = Rule(item.first);
        if (is_inlined_[item.first]) {
          tasks.push_back({expressions_.body(rule), task.from, task.to});
        } else {
          connect(task.from, {.kind = EdgeKind::call, .value = piece_of(rule), .target = task.to});
        }
        return;
      }
      case Kind::token:
        return connect(task.from,
                       {.kind = EdgeKind::token, .value = item.first, .target = task.to});
    }
  }

  void build_text(std::string_view text, const Task& task) {
    uint32_t from = task.from;
    for (size_t i = 0; i < text.size(); ++i) {
      const uint32_t to = i + 1 == text.size() ? task.to : new_state();
      connect(from, {.kind = EdgeKind::bytes,
                     .first = uint8_t(text[i]),
                     .last = uint8_t(text[i]),
                     .target = to});
      from = to;
    }
  }

  void build_characters(const Expressions::Item& item, const Task& task) {
    // Behind a leading byte often any continuation bytes may follow: those states are shared.
    std::array<uint32_t, 4> continued = {task.to, kNone, kNone, kNone};
    const auto state_before = [&](size_t count) {
      for (size_t i = 1; i <= count; ++i) {
        if (continued[i] != kNone) continue;
        continued[i] = new_state();
        connect(continued[i],
                {.kind = EdgeKind::bytes, .first = 0x80, .last = 0xBF, .target = continued[i - 1]});
      }
      return continued[count];
    };
    for (const CharacterRange& range : expressions_.ranges_of(item)) {
      for_utf8_sequences(range, [&](std::span<const ByteRange> bytes) {
        work_ -= 4;
        uint32_t from = task.from;
        for (size_t i = 0; i < bytes.size(); ++i) {
          const auto rest = bytes.subspan(i + 1);
          const bool is_free = std::all_of(rest.begin(), rest.end(), [](const ByteRange& byte) {
            return byte.first == 0x80 && byte.last == 0xBF;
          });
          const uint32_t to = is_free ? state_before(rest.size()) : new_state();
          connect(from, {.kind = EdgeKind::bytes,
                         .first = bytes[i].first,
                         .last = bytes[i].last,
                         .target = to});
          if (is_free) return;
          from = to;
        }
      });
    }
  }

  void build_repeat(const Expressions::Item& item, const Task& task, std::vector<Task>& tasks) {
    const Node body = expressions_.children_of(item)[0];
    if (!is_unrolled(item)) {
      const auto repeat = uint32_t(out_.repeats.size());
      out_.repeats.push_back(
          {.body = uint32_t(out_.pieces.size()), .min = item.min, .max = item.max});
      out_.pieces.push_back({.node = body, .name = name_});
      return connect(task.from, {.kind = EdgeKind::repeat, .value = repeat, .target = task.to});
    }
    uint32_t from = task.from;
    for (int32_t i = 0; i < item.min; ++i) {
      const uint32_t to = new_state();
      tasks.push_back({body, from, to});
      from = to;
    }
    if (item.max == kUnbounded) {
      const uint32_t loop = new_state(), back = new_state();
      connect(from, loop);
      tasks.push_back({body, loop, back});
      connect(back, loop);
      return connect(loop, task.to);
    }
    for (int32_t i = item.min; i < item.max; ++i) {
      const uint32_t to = new_state();
      connect(from, task.to);
      tasks.push_back({body, from, to});
      from = to;
    }
    connect(from, task.to);
  }

  const Expressions& expressions_;
  const Limits& limits_;
  int64_t& work_;
  Fragments out_;
  uint32_t name_ = 0;
  std::vector<uint32_t> pieces_of_rules_;
  std::vector<bool> is_inlined_;
  std::vector<int64_t> rule_sizes_;
  std::vector<int64_t> sizes_;
};

}  // namespace

Result<Fragments> make_fragments(const Expressions& expressions, Rule root, const Limits& limits,
                                 int64_t& work) {
  return Maker(expressions, limits, work).make(root);
}

}  // namespace cairn::grammar
