// A node is a prefix that some entries have in common. Nodes stand where entries part, where they
// end, and where a run of resumable positions ends. Each node has a front: of the runs that end at
// it or behind it and reach back to it, those that no other surpasses. A run surpasses another if
// it begins no later and resumes from a state that is no earlier; what is surpassed at a node is
// surpassed at all nodes above. So a position of a node's edge can be resumed if a run of the front
// begins at or before it, and the last such run has the fewest steps to replay.
#include "memory/cache/prefix_tree.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "memory/common_prefix.h"

namespace cairn::memory {

struct PrefixNode {
  // A run of resumable positions that ends at a node's depth.
  struct Mark {
    int32_t begin = 0;
    int32_t state = 0;
    bool has_hidden = false;  // Of one position, where the hidden row is held as well.
    int64_t last_use = 0;     // Of the entry.
    CacheEntry* entry = nullptr;

    // Hidden rows first, the latest state first; of equal runs the one that was used last.
    bool operator<(const Mark& other) const {
      return std::tuple(!has_hidden, -state, begin, -last_use) <
             std::tuple(!other.has_hidden, -other.state, other.begin, -other.last_use);
    }
  };
  struct Child {
    Token first;  // Of the edge: found without a look at the node.
    std::unique_ptr<PrefixNode> node;
  };

  PrefixNode* parent = nullptr;  // Null: the root.
  int32_t depth = 0;             // In tokens.
  std::span<const Token> edge;   // The tokens between the parent and here, which lie in the owner.
  CacheEntry* owner = nullptr;   // An entry that ends here or behind.
  std::vector<Child> children;   // Ascending.
  std::vector<CacheEntry*> entries;  // That end here, by id.
  std::set<Mark> ends;               // Runs that end here.
  std::vector<Mark> front;           // Begins ascend, and so do states.

  auto child_slot(Token token) {
    return std::lower_bound(children.begin(), children.end(), token,
                            [](const Child& child, Token wanted) { return child.first < wanted; });
  }
  PrefixNode* child(Token token) {
    const auto slot = child_slot(token);
    return slot != children.end() && slot->first == token ? slot->node.get() : nullptr;
  }
  PrefixNode& add_child(std::unique_ptr<PrefixNode> node) {
    const Token first = node->edge.front();
    node->parent = this;
    return *children.insert(child_slot(first), {first, std::move(node)})->node;
  }
  bool is_fork() const { return children.size() > 1 || !entries.empty(); }
  bool is_needed() const { return is_fork() || !ends.empty(); }
  void set_owner(CacheEntry* entry) {
    owner = entry;
    edge = entry->sequence.tokens().subspan(size_t(parent->depth), size_t(depth - parent->depth));
  }
};

namespace {

using Mark = PrefixNode::Mark;

bool is_same_run(const Mark& a, const Mark& b) {
  return a.begin == b.begin && a.state == b.state;
}

bool surpasses(const Mark& a, const Mark& b) {
  return a.begin <= b.begin && a.state >= b.state;
}

// The node at `depth`, made if need be: `node` itself, or one on its edge.
PrefixNode& split(PrefixNode& node, int32_t depth) {
  if (node.depth == depth) return node;
  PrefixNode& parent = *node.parent;
  auto& slot = parent.child_slot(node.edge.front())->node;
  auto lower = std::move(slot);
  slot = std::make_unique<PrefixNode>();
  PrefixNode& upper = *slot;
  const size_t upper_tokens = size_t(depth - parent.depth);
  upper.parent = &parent;
  upper.depth = depth;
  upper.edge = lower->edge.first(upper_tokens);
  upper.owner = lower->owner;
  for (const Mark& mark : lower->front) {
    if (mark.begin <= depth) upper.front.push_back(mark);
  }
  lower->edge = lower->edge.subspan(upper_tokens);
  upper.add_child(std::move(lower));
  return upper;
}

// Of equal runs, the one that was used last is in the front.
bool add_to_front(std::vector<Mark>& front, const Mark& mark) {
  for (Mark& other : front) {
    if (!surpasses(other, mark)) continue;
    if (!is_same_run(other, mark) || other.last_use > mark.last_use) return false;
    other = mark;
    return true;
  }
  std::erase_if(front, [&](const Mark& other) { return surpasses(mark, other); });
  const auto place = std::find_if(front.begin(), front.end(),
                                  [&](const Mark& other) { return other.begin > mark.begin; });
  front.insert(place, mark);
  return true;
}

void add_mark(PrefixNode& at, const Mark& mark) {
  at.ends.insert(mark);
  for (PrefixNode* node = &at; mark.begin <= node->depth; node = node->parent) {
    if (!add_to_front(node->front, mark)) break;
  }
}

Mark* find_run(std::vector<Mark>& front, const Mark& mark) {
  const auto found = std::find_if(front.begin(), front.end(),
                                  [&](const Mark& other) { return is_same_run(other, mark); });
  return found == front.end() ? nullptr : &*found;
}

// The same run of another entry, if there is one: of those that end at the node and those that few
// of its children have, the one that was used last. It need not be the very last one, since an
// entry that was used becomes the one in the front.
const Mark* find_same(PrefixNode& node, const Mark& mark) {
  constexpr size_t kChildrenMax = 64;
  const Mark* same = nullptr;
  const auto offer = [&](const Mark* other) {
    if (other == nullptr || !is_same_run(*other, mark)) return;
    if (same == nullptr || other->last_use > same->last_use) same = other;
  };
  for (const bool has_hidden : {false, true}) {
    const Mark first{.begin = mark.begin,
                     .state = mark.state,
                     .has_hidden = has_hidden,
                     .last_use = INT64_MAX,
                     .entry = nullptr};
    const auto at = node.ends.lower_bound(first);
    if (at != node.ends.end()) offer(&*at);
  }
  for (size_t index = 0; index < node.children.size(); ++index) {
    if (index >= kChildrenMax && same != nullptr) break;
    offer(find_run(node.children[index].node->front, mark));
  }
  return same;
}

void rebuild_front(PrefixNode& node) {
  node.front.clear();
  for (const Mark& mark : node.ends) add_to_front(node.front, mark);
  for (const PrefixNode::Child& child : node.children) {
    for (const Mark& mark : child.node->front) {
      if (mark.begin <= node.depth) add_to_front(node.front, mark);
    }
  }
}

// Where the front of a node does not have the run, no front above has it.
void remove_mark(PrefixNode& at, const Mark& mark) {
  at.ends.erase(mark);
  for (PrefixNode* node = &at; mark.begin <= node->depth; node = node->parent) {
    Mark* const in_front = find_run(node->front, mark);
    if (in_front == nullptr || in_front->entry != mark.entry) break;
    if (const Mark* const same = find_same(*node, mark)) {
      *in_front = *same;
    } else {
      rebuild_front(*node);
    }
  }
}

// The entry was used.
void renew_mark(PrefixNode& at, const Mark& mark, int64_t last_use) {
  at.ends.erase(mark);
  Mark renewed = mark;
  renewed.last_use = last_use;
  add_mark(at, renewed);
}

struct EndedMark {
  Mark mark;
  int32_t end = 0;
};

// The runs of an entry, the last one first, with one more for each hidden row.
std::vector<EndedMark> marks_of(const Memory& memory, CacheEntry& entry) {
  const Sequence& sequence = entry.sequence;
  std::vector<int32_t> rows;  // Ascending.
  for (const Anchor& anchor : sequence.anchors()) {
    if (anchor.hidden) rows.push_back(anchor.position);
  }
  const bool has_end = !rows.empty() && rows.back() == sequence.length();
  if (sequence.has_hidden() && !has_end) rows.push_back(sequence.length());
  std::vector<EndedMark> marks;
  for (const ResumableRun& run : memory.resumable_runs(sequence)) {
    while (!rows.empty() && rows.back() > run.end) rows.pop_back();
    const Mark mark{.begin = run.begin,
                    .state = run.state,
                    .has_hidden = false,
                    .last_use = entry.last_use,
                    .entry = &entry};
    marks.push_back({mark, run.end});
    for (; !rows.empty() && rows.back() >= run.begin; rows.pop_back()) {
      Mark row = mark;
      row.begin = rows.back();
      row.has_hidden = true;
      marks.push_back({row, rows.back()});
    }
  }
  return marks;
}

// The node at or above `node` whose edge has the position.
PrefixNode& above(PrefixNode& node, int32_t position) {
  PrefixNode* at = &node;
  while (at->parent->parent != nullptr && at->parent->depth >= position) at = at->parent;
  return *at;
}

// Puts a node's only child in its place.
void join_with_child(PrefixNode& node) {
  PrefixNode& parent = *node.parent;
  auto& slot = parent.child_slot(node.edge.front())->node;
  auto child = std::move(node.children.front().node);
  child->parent = &parent;
  child->set_owner(child->owner);
  slot = std::move(child);
}

// From `end` to the root: nodes that nothing needs go, and edges lie in entries that are there.
void prune(PrefixNode& end, const CacheEntry* erased) {
  for (PrefixNode* node = &end; node->parent != nullptr;) {
    PrefixNode* const parent = node->parent;
    if (node->children.empty() && node->entries.empty()) {
      parent->children.erase(parent->child_slot(node->edge.front()));
    } else {
      if (node->owner == erased) {
        node->set_owner(node->entries.empty() ? node->children.front().node->owner
                                              : node->entries.front());
      }
      if (!node->is_needed()) join_with_child(*node);
    }
    node = parent;
  }
}

}  // namespace

PrefixTree::PrefixTree(const Memory* memory) : memory_(memory) {}

// Without recursion, which could become as deep as a sequence is long.
PrefixTree::~PrefixTree() {
  std::vector<std::unique_ptr<PrefixNode>> nodes;
  for (auto& [variant, root] : roots_) nodes.push_back(std::move(root));
  while (!nodes.empty()) {
    const std::unique_ptr<PrefixNode> node = std::move(nodes.back());
    nodes.pop_back();
    for (PrefixNode::Child& child : node->children) nodes.push_back(std::move(child.node));
  }
}

PrefixTree::Spot PrefixTree::walk(PrefixNode& root, std::span<const Token> tokens) const {
  Spot at{&root, 0};
  while (size_t(at.depth) < tokens.size()) {
    PrefixNode* const child = at.node->child(tokens[size_t(at.depth)]);
    if (child == nullptr) break;
    const int32_t shared = common_prefix(child->edge, tokens.subspan(size_t(at.depth)));
    at = {child, at.depth + shared};
    if (at.depth < child->depth) break;
  }
  return at;
}

void PrefixTree::insert(CacheEntry& entry) {
  std::unique_ptr<PrefixNode>& root = roots_[entry.sequence.variant()];
  if (root == nullptr) root = std::make_unique<PrefixNode>();
  const Spot at = walk(*root, entry.sequence.tokens());
  PrefixNode* end = at.depth == 0 ? root.get() : &split(*at.node, at.depth);
  if (at.depth < entry.sequence.length()) {
    auto leaf = std::make_unique<PrefixNode>();
    leaf->parent = end;
    leaf->depth = entry.sequence.length();
    leaf->set_owner(&entry);
    end = &end->add_child(std::move(leaf));
  }
  const auto by_id = [](const CacheEntry* a, const CacheEntry* b) { return a->id < b->id; };
  end->entries.insert(std::lower_bound(end->entries.begin(), end->entries.end(), &entry, by_id),
                      &entry);
  entry.node = end;
  for (const EndedMark& ended : marks_of(*memory_, entry)) {
    end = &split(above(*end, ended.end), ended.end);
    add_mark(*end, ended.mark);
  }
}

void PrefixTree::erase(CacheEntry& entry) {
  PrefixNode& end = *std::exchange(entry.node, nullptr);
  PrefixNode* node = &end;
  for (const EndedMark& ended : marks_of(*memory_, entry)) {
    node = &above(*node, ended.end);
    DCHECK(node->depth == ended.end);
    remove_mark(*node, ended.mark);
  }
  std::erase(end.entries, &entry);
  prune(end, &entry);
  const auto root = roots_.find(entry.sequence.variant());
  if (root->second->children.empty()) roots_.erase(root);
}

void PrefixTree::use(CacheEntry& entry, int64_t last_use) {
  PrefixNode* node = entry.node;
  for (const EndedMark& ended : marks_of(*memory_, entry)) {
    node = &above(*node, ended.end);
    renew_mark(*node, ended.mark, last_use);
  }
  entry.last_use = last_use;
}

PrefixTree::Match PrefixTree::match(std::span<const Token> prompt, Variant variant,
                                    bool wants_logits) const {
  const auto root = roots_.find(variant);
  if (root == roots_.end()) return {};
  const Spot at = walk(*root->second, prompt);
  if (at.depth == 0) return {};
  const bool is_at_node = at.depth == at.node->depth;
  Match match{.shared = at.depth};
  match.nearest =
      is_at_node && !at.node->entries.empty() ? at.node->entries.front() : at.node->owner;
  match.goes_on = !is_at_node || !at.node->children.empty();
  const PrefixNode* node = at.node;
  int32_t limit = at.depth;
  if (wants_logits && size_t(at.depth) == prompt.size()) {
    if (is_at_node && !node->ends.empty() && node->ends.begin()->has_hidden) {
      match.resume = at.depth;
      match.best = node->ends.begin()->entry;
      return match;
    }
    --limit;
    if (limit == node->parent->depth) node = node->parent;
  }
  for (; node->parent != nullptr; node = node->parent, limit = node->depth) {
    const auto next = std::find_if(node->front.begin(), node->front.end(),
                                   [&](const Mark& mark) { return mark.begin > limit; });
    if (next == node->front.begin()) continue;
    match.resume = limit;
    match.best = std::prev(next)->entry;
    break;
  }
  return match;
}

int32_t PrefixTree::foreign_prefix(std::span<const Token> prompt, Variant variant) const {
  int32_t longest = 0;
  for (const auto& [other, root] : roots_) {
    const bool is_kin = other.tenant == variant.tenant && other != variant;
    if (is_kin) longest = std::max(longest, walk(*root, prompt).depth);
  }
  return longest;
}

PrefixTree::Neighbour PrefixTree::neighbour(const CacheEntry& entry) {
  const PrefixNode* node = entry.node;
  const PrefixNode* from = nullptr;  // Its child on the way to the entry.
  while (node->parent != nullptr && node->children.size() == (from ? 1u : 0u) &&
         node->entries.size() == (from ? 0u : 1u)) {
    from = node;
    node = node->parent;
  }
  if (node->parent == nullptr) return {};
  for (CacheEntry* const other : node->entries) {
    if (other != &entry) return {node->depth, other};
  }
  const bool is_first = node->children.front().node.get() == from;
  return {node->depth, node->children[is_first ? 1 : 0].node->owner};
}

std::vector<CacheEntry*> PrefixTree::beginnings(std::span<const Token> tokens, Variant variant,
                                                size_t count_max) const {
  std::vector<CacheEntry*> found;
  const auto root = roots_.find(variant);
  if (root == roots_.end()) return found;
  const Spot at = walk(*root->second, tokens);
  const PrefixNode* node = at.depth < at.node->depth ? at.node->parent : at.node;
  for (; node != nullptr; node = node->parent) {
    for (CacheEntry* const entry : node->entries) {
      if (found.size() == count_max) return found;
      found.push_back(entry);
    }
  }
  return found;
}

std::vector<CacheEntry*> PrefixTree::continuations(std::span<const Token> tokens, Variant variant,
                                                   size_t count_max) const {
  std::vector<CacheEntry*> found;
  const auto root = roots_.find(variant);
  if (root == roots_.end()) return found;
  const Spot at = walk(*root->second, tokens);
  if (size_t(at.depth) < tokens.size()) return found;
  // Level by level. Each node leads to an entry, so that few nodes are enough.
  std::vector<const PrefixNode*> nodes = {at.node};
  for (size_t index = 0; index < nodes.size() && found.size() < count_max; ++index) {
    for (CacheEntry* const entry : nodes[index]->entries) {
      if (found.size() < count_max) found.push_back(entry);
    }
    for (const PrefixNode::Child& child : nodes[index]->children) {
      if (nodes.size() < index + 1 + count_max) nodes.push_back(child.node.get());
    }
  }
  return found;
}

}  // namespace cairn::memory
