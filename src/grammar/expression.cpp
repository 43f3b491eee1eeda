// Building nodes; trivial sequences and choices are not kept.
#include "grammar/expression.h"

#include <algorithm>

namespace cairn::grammar {

Node Expressions::add(Item item) {
  items_.push_back(item);
  return Node(items_.size() - 1);
}

Node Expressions::empty() {
  return add({});
}

Node Expressions::text(std::string_view bytes) {
  if (bytes.empty()) return empty();
  const auto first = uint32_t(bytes_.size());
  bytes_ += bytes;
  return add({.kind = Kind::text, .first = first, .count = uint32_t(bytes.size())});
}

Node Expressions::characters(const CharacterSet& set) {
  const auto first = uint32_t(ranges_.size());
  const std::vector<CharacterRange> ranges = set.ranges();
  ranges_.insert(ranges_.end(), ranges.begin(), ranges.end());
  return add({.kind = Kind::characters, .first = first, .count = uint32_t(ranges.size())});
}

Node Expressions::add_parent(Kind kind, std::span<const Node> parts) {
  Item parent{.kind = kind, .first = uint32_t(children_.size()), .count = uint32_t(parts.size())};
  for (const Node part : parts) parent.depth = std::max(parent.depth, item(part).depth + 1);
  children_.insert(children_.end(), parts.begin(), parts.end());
  return add(parent);
}

Node Expressions::sequence(std::span<const Node> parts) {
  if (parts.empty()) return empty();
  return parts.size() == 1 ? parts.front() : add_parent(Kind::sequence, parts);
}

Node Expressions::choice(std::span<const Node> parts) {
  return parts.size() == 1 ? parts.front() : add_parent(Kind::choice, parts);
}

Node Expressions::repeat(Node body, int32_t min, int32_t max) {
  DCHECK(0 <= min && min <= max);
  if (min == 1 && max == 1) return body;
  if (max == 0) return empty();
  const Node node = add_parent(Kind::repeat, std::span(&body, 1));
  items_.back().min = min;
  items_.back().max = max;
  return node;
}

Node Expressions::call(Rule rule) {
  DCHECK(size_t(rule) < rule_count());
  return add({.kind = Kind::call, .first = uint32_t(rule)});
}

Node Expressions::token(TokenPattern pattern) {
  const auto known = std::find(patterns_.begin(), patterns_.end(), pattern);
  const auto first = uint32_t(known - patterns_.begin());
  if (known == patterns_.end()) patterns_.push_back(std::move(pattern));
  return add({.kind = Kind::token, .first = first});
}

Rule Expressions::declare(std::string name) {
  names_.push_back(std::move(name));
  bodies_.emplace_back();
  defined_.push_back(false);
  return Rule(names_.size() - 1);
}

void Expressions::define(Rule rule, Node body) {
  bodies_[index(rule)] = body;
  defined_[index(rule)] = true;
}

void Expressions::forbid(size_t first, const CharacterSet& never) {
  const size_t end = items_.size();
  for (size_t node = first; node < end; ++node) {
    const Item item = items_[node];
    CharacterSet left;
    if (item.kind == Kind::characters) {
      for (const CharacterRange& range : ranges_of(item)) left.add(range.first, range.last);
      left.remove(never);
      const Node other = characters(left);
      items_[node] = items_[size_t(other)];
    } else if (item.kind == Kind::text) {
      bool holds_one = false;
      for (std::string_view rest = text_of(item); !rest.empty() && !holds_one;) {
        const auto character = decode_character(rest);
        if (!character) break;
        holds_one = never.contains(character->value);
        rest.remove_prefix(character->bytes);
      }
      if (holds_one) items_[node] = {.kind = Kind::choice};
    }
  }
}

}  // namespace cairn::grammar
