// A tree of the names' characters: at each node a text may go on as a name does, or differ and then
// be anything, or end where no name ends.
#include "grammar/key_set.h"

#include <map>
#include <vector>

namespace cairn::grammar {

namespace {

struct TreeNode {
  std::map<char32_t, size_t> children;  // Younger than their parent.
  bool is_name = false;
};

}  // namespace

Node keys_except(std::span<const std::string> names, Expressions& expressions) {
  const CharacterSet special = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  const CharacterSet plain = special.inverse();
  std::vector<TreeNode> tree(1);
  for (const std::string& name : names) {
    size_t at = 0;
    for (size_t i = 0; i < name.size();) {
      const auto character = decode_character(std::string_view(name).substr(i));
      if (!character || special.contains(character->value)) {
        at = SIZE_MAX;  // It cannot be spelled without escapes.
        break;
      }
      const auto [child, is_new] = tree[at].children.try_emplace(character->value, tree.size());
      at = child->second;
      if (is_new) tree.emplace_back();
      i += character->bytes;
    }
    if (at != SIZE_MAX) tree[at].is_name = true;
  }
  const Node anything = expressions.repeat(expressions.characters(plain), 0, kUnbounded);
  std::vector<Node> nodes(tree.size());
  for (size_t i = tree.size(); i-- > 0;) {
    std::vector<Node> ways;
    CharacterSet others = plain, known;
    for (const auto& [character, child] : tree[i].children) {
      known.add(character);
      ways.push_back(
          expressions.sequence({expressions.characters({{character, character}}), nodes[child]}));
    }
    others.remove(known);
    ways.push_back(expressions.sequence({expressions.characters(others), anything}));
    if (!tree[i].is_name) ways.push_back(expressions.empty());
    nodes[i] = expressions.choice(ways);
  }
  return expressions.sequence({expressions.text("\""), nodes[0], expressions.text("\"")});
}

}  // namespace cairn::grammar
