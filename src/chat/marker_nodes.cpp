// Cutting markers at the names of control tokens.
#include "chat/marker_nodes.h"

#include <algorithm>

#include "chat/loose_match.h"

namespace cairn::chat {

namespace {

using grammar::Node;

constexpr int32_t kIndentMax = 8;

// Whether a beginning of the text is its end too, so that it may begin within what stands before.
bool overlaps_itself(std::string_view text) {
  for (size_t bytes = 1; bytes < text.size(); ++bytes) {
    if (text.ends_with(text.substr(0, bytes))) return true;
  }
  return false;
}

}  // namespace

MarkerNodes::MarkerNodes(grammar::Builder* builder, const tokenize::Tokenizer* tokenizer)
    : builder_(builder) {
  if (tokenizer == nullptr) return;
  for (int32_t id = 0; size_t(id) < tokenizer->token_count(); ++id) {
    const std::string_view piece = tokenizer->piece(Token(id));
    if (piece.empty()) continue;
    if (tokenizer->is_end_of_generation(Token(id))) {
      ends_.push_back(piece);
    } else if (tokenizer->is_control(Token(id))) {
      controls_.emplace_back(piece, Token(id));
    }
  }
  std::stable_sort(controls_.begin(), controls_.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
}

Node MarkerNodes::marker(std::string_view text) {
  std::vector<Node> parts;
  std::string spelled;
  const auto flush = [&] {
    if (!spelled.empty()) parts.push_back(builder_->text(spelled));
    spelled.clear();
  };
  while (!text.empty()) {
    const auto begins = [&](std::string_view piece) { return text.starts_with(piece); };
    if (std::any_of(ends_.begin(), ends_.end(), begins)) break;
    const auto found = std::find_if(controls_.begin(), controls_.end(),
                                    [&](const auto& control) { return begins(control.first); });
    if (found == controls_.end()) {
      spelled += text.front();
      text.remove_prefix(1);
      continue;
    }
    flush();
    parts.push_back(builder_->token(found->second));
    text.remove_prefix(found->first.size());
  }
  flush();
  return builder_->sequence(parts);
}

Node MarkerNodes::trimmed(std::string_view text) {
  return marker(chat::trimmed(text));
}

Node MarkerNodes::without(std::vector<std::string> never) {
  std::erase_if(never, [](const std::string& text) { return text.empty(); });
  return builder_->text_without(never);
}

Node MarkerNodes::until(std::string_view end, std::vector<std::string> never) {
  const auto holds = [&](const auto& control) { return end.find(control.first) != end.npos; };
  const bool is_text = std::none_of(controls_.begin(), controls_.end(), holds);
  if (never.empty() && is_text && overlaps_itself(end)) return builder_->text_until(end);
  never.emplace_back(end);
  return builder_->sequence({without(std::move(never)), marker(end)});
}

Node MarkerNodes::blanks() {
  grammar::Builder& b = *builder_;
  if (!has_blanks_) {
    const grammar::Rule rule = b.declare("blanks");
    const Node lines = b.repeat(b.text("\n"), 1, 2);
    b.define(rule, b.choice({b.empty(), b.text(" "),
                             b.sequence({lines, b.repeat(b.text(" "), 0, kIndentMax)})}));
    blanks_ = b.call(rule);
  }
  has_blanks_ = true;
  return blanks_;
}

}  // namespace cairn::chat
