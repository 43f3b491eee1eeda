// Each rule once. What a rule calls may call it in turn: it is declared before it is made.
#include "grammar/json_nodes.h"

#include "json/document.h"

namespace cairn::grammar {

namespace {

constexpr int32_t kDigitsMax = 16;
constexpr int32_t kSpacesMax = 20;
constexpr int32_t kTabsMax = 8;

CharacterSet hexadecimal() {
  return {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
}

}  // namespace

template <class Make>
Node JsonNodes::rule(Known known, std::string_view name, const Make& make) {
  if (!rules_[known]) {
    rules_[known] = expressions_.declare(std::string(name));
    const Node body = make();
    expressions_.define(*rules_[known], body);
  }
  return expressions_.call(*rules_[known]);
}

Node JsonNodes::blanks() {
  return rule(kBlanks, "blanks", [&] {
    Expressions& e = expressions_;
    const Node spaces = e.repeat(e.text(" "), 0, kSpacesMax);
    const Node tabs = e.repeat(e.text("\t"), 1, kTabsMax);
    return e.choice({e.empty(), e.text(" "), e.sequence({e.text("\n"), e.choice({spaces, tabs})})});
  });
}

Node JsonNodes::character() {
  return rule(kCharacter, "character", [&] {
    Expressions& e = expressions_;
    const CharacterSet special = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
    const CharacterSet hex = hexadecimal();
    CharacterSet not_d = hex;
    not_d.remove({{'d', 'd'}, {'D', 'D'}});
    const CharacterSet d = {{'d', 'd'}, {'D', 'D'}};
    const Node one = e.characters(hex), two = e.repeat(one, 2, 2), three = e.repeat(one, 3, 3);
    const Node high =
        e.sequence({e.characters(d), e.characters({{'8', '9'}, {'A', 'B'}, {'a', 'b'}})});
    const Node low = e.sequence({e.characters(d), e.characters({{'C', 'F'}, {'c', 'f'}})});
    const Node plain = e.sequence({e.characters(d), e.characters({{'0', '7'}})});
    const Node coded = e.choice({e.sequence({e.characters(not_d), three}), e.sequence({plain, two}),
                                 e.sequence({high, two, e.text("\\u"), low, two})});
    CharacterSet letters;
    for (const char letter : std::string_view("\"\\/bfnrt")) letters.add(char32_t(letter));
    const Node escaped = e.choice({e.characters(letters), e.sequence({e.text("u"), coded})});
    return e.choice({e.characters(special.inverse()), e.sequence({e.text("\\"), escaped})});
  });
}

Node JsonNodes::string() {
  return rule(kString, "string", [&] {
    const Node content = expressions_.repeat(character(), 0, kUnbounded);
    return expressions_.sequence({expressions_.text("\""), content, expressions_.text("\"")});
  });
}

Node JsonNodes::integer() {
  return rule(kInteger, "integer", [&] {
    Expressions& e = expressions_;
    const Node more = e.repeat(e.characters({{'0', '9'}}), 0, kDigitsMax - 1);
    const Node digits = e.choice({e.text("0"), e.sequence({e.characters({{'1', '9'}}), more})});
    return e.sequence({e.optional(e.text("-")), digits});
  });
}

Node JsonNodes::number() {
  return rule(kNumber, "number", [&] {
    Expressions& e = expressions_;
    const Node digit = e.characters({{'0', '9'}});
    const Node fraction = e.sequence({e.text("."), e.repeat(digit, 1, kDigitsMax)});
    const Node exponent =
        e.sequence({e.characters({{'E', 'E'}, {'e', 'e'}}),
                    e.optional(e.characters({{'+', '+'}, {'-', '-'}})), e.repeat(digit, 1, 2)});
    return e.sequence({integer(), e.optional(fraction), e.optional(exponent)});
  });
}

Node JsonNodes::boolean() {
  return rule(kBoolean, "boolean", [&] {
    return expressions_.choice({expressions_.text("true"), expressions_.text("false")});
  });
}

Node JsonNodes::value() {
  return rule(kValue, "value", [&] {
    return expressions_.choice({object(), array(), string(), number(), boolean(), null()});
  });
}

Node JsonNodes::object() {
  return rule(kObject, "object",
              [&] { return list("{", member(string(), value()), 0, kUnbounded, "}"); });
}

Node JsonNodes::array() {
  return rule(kArray, "array", [&] { return list("[", value(), 0, kUnbounded, "]"); });
}

Node JsonNodes::list(std::string_view open, Node item, int32_t min, int32_t max,
                     std::string_view close) {
  Expressions& e = expressions_;
  if (max == 0) return e.sequence({e.text(open), blanks(), e.text(close)});
  const Node more = e.repeat(e.sequence({comma(), item}), min > 0 ? min - 1 : 0,
                             max == kUnbounded ? kUnbounded : max - 1);
  const Node items = e.sequence({item, more, blanks()});
  return e.sequence({e.text(open), blanks(), min == 0 ? e.optional(items) : items, e.text(close)});
}

Node JsonNodes::member(Node name, Node value) {
  return expressions_.sequence(
      {name, expressions_.text(":"), expressions_.optional(expressions_.text(" ")), value});
}

Node JsonNodes::comma() {
  return expressions_.sequence({expressions_.text(","), blanks()});
}

Node JsonNodes::quoted(std::string_view content) {
  return expressions_.text(json::quoted(content));
}

}  // namespace cairn::grammar
