// The reader's events as numbered values. A value's size is known where it ends.
#include "json/document.h"

#include <algorithm>

namespace cairn::json {

namespace {

using Kind = Document::Kind;

Kind kind_of(Event event) {
  switch (event) {
    case Event::boolean:
      return Kind::boolean;
    case Event::number:
      return Kind::number;
    case Event::string:
      return Kind::string;
    case Event::begin_array:
      return Kind::array;
    case Event::begin_object:
      return Kind::object;
    default:
      return Kind::null;
  }
}

}  // namespace

Result<Document> Document::read(std::string_view name, std::string_view source,
                                const Limits& limits) {
  Document document;
  document.source_ = source;
  std::vector<Value>& values = document.values_;
  Reader reader(name, document.source_, limits);
  std::vector<uint32_t> open;
  while (true) {
    CAIRN_TRY(const Event event, reader.next());
    switch (event) {
      case Event::end:
        return document;
      case Event::key:
        values[open.back()].members.push_back(
            {std::move(reader.text()), uint32_t(values.size()), reader.offset()});
        break;
      case Event::end_object:
      case Event::end_array:
        values[open.back()].size = reader.offset() + 1 - values[open.back()].offset;
        open.pop_back();
        break;
      default: {
        const auto number = uint32_t(values.size());
        const Kind kind = kind_of(event);
        if (!open.empty() && values[open.back()].kind == Kind::array) {
          values[open.back()].items.push_back(number);
        }
        values.push_back({.kind = kind, .offset = reader.offset()});
        values.back().size = reader.spelling().size();
        if (kind == Kind::string) values.back().text = std::move(reader.text());
        if (kind == Kind::array || kind == Kind::object) open.push_back(number);
      }
    }
  }
}

const Document::Member* Document::find(uint32_t object, std::string_view key) const {
  const std::vector<Member>& members = values_[object].members;
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const Member& member) { return member.key == key; });
  return found == members.end() ? nullptr : &*found;
}

std::string Document::compact(uint32_t number) const {
  // Blanks outside of strings go; a string alone is escaped no more than it must be.
  const Value& root = values_[number];
  std::string out;
  const std::string_view text = spelling(number);
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '"') {
      if (std::string_view(" \t\n\r").find(text[at]) == std::string_view::npos) out += text[at];
      ++at;
      continue;
    }
    size_t end = at + 1;
    while (text[end] != '"') end += text[end] == '\\' ? 2 : 1;
    out += text.substr(at, end + 1 - at);
    at = end + 1;
  }
  return root.kind == Kind::string ? quoted(root.text) : out;
}

}  // namespace cairn::json
