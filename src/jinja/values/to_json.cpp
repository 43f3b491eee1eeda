// json.dumps with the options that Hugging Face's tojson passes on.
#include <algorithm>
#include <cmath>

#include "jinja/characters.h"
#include "jinja/operations.h"
#include "jinja/values/text_form.h"

namespace cairn::jinja {
namespace {

// Writing a character as \u and its number.
constexpr size_t kEscapeWork = 256;

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  Result<Value> run(const Value& value) {
    CAIRN_TRY(write(value, 0));
    return runtime_.string(std::move(out_));
  }

 private:
  void add(std::string_view text) { out_.append(text, false); }

  // Each value costs at least its share of a step, whatever it is.
  Status check(size_t more) {
    CAIRN_TRY(runtime_.work(more + 32));
    return runtime_.check_string(out_.size() + more);
  }

  Status write(const Value& value, size_t level) {
    CAIRN_TRY(check(32 + level * style_.indent.size()));
    switch (value.kind()) {
      case Kind::none:
        add("null");
        return Ok{};
      case Kind::boolean:
        add(value.as_boolean() ? "true" : "false");
        return Ok{};
      case Kind::integer:
        add(std::to_string(value.as_integer()));
        return Ok{};
      case Kind::real:
        add(real(value.as_real()));
        return Ok{};
      case Kind::string:
        return quoted(value.marked());
      case Kind::list:
      case Kind::tuple:
        return list(value.items(), level);
      case Kind::dict:
        return dict(value.as<DictObject>(), level);
      default:
        return wrong_type("tojson", "a value that JSON has", value);
    }
  }

  static std::string real(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return real_repr(value);
  }

  static std::string_view short_escape(char32_t code) {
    switch (code) {
      case '"':
        return "\\\"";
      case '\\':
        return "\\\\";
      case '\n':
        return "\\n";
      case '\r':
        return "\\r";
      case '\t':
        return "\\t";
      case '\f':
        return "\\f";
      case '\b':
        return "\\b";
      default:
        return {};
    }
  }

  Status quoted(const MarkedText& text) {
    const std::string_view bytes = text.bytes();
    CAIRN_TRY(check(bytes.size() + 2));
    CAIRN_TRY(runtime_.work(bytes.size() * kCharacterWork));
    add("\"");
    OriginWalk origin(text);
    size_t from = 0;
    for (size_t at = 0; at < bytes.size();) {
      const char32_t code = character_at(bytes, at);
      const size_t end = next_character(bytes, at);
      std::string escape(short_escape(code));
      if (escape.empty() && (code < 0x20 || (style_.ensure_ascii && code > 0x7e))) {
        const uint32_t number = uint32_t(code);
        escape = number < 0x10000
                     ? fmt::format("\\u{:04x}", number)
                     : fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((number - 0x10000) >> 10),
                                   0xdc00 + ((number - 0x10000) & 0x3ff));
      }
      if (!escape.empty()) {
        CAIRN_TRY(check(escape.size()));
        CAIRN_TRY(runtime_.work(escape.size() > 2 ? kEscapeWork : kPropertyWork));
        out_.append(text, from, at);
        out_.append(escape, origin.is_trusted_at(at));
        from = end;
      }
      at = end;
    }
    out_.append(text, from, bytes.size());
    add("\"");
    return check(0);
  }

  void new_line(size_t level) {
    if (!style_.has_indent) return;
    add("\n");
    for (size_t i = 0; i < level; ++i) add(style_.indent);
  }

  Status list(const std::vector<Value>& items, size_t level) {
    if (items.empty()) return add("[]"), Status(Ok{});
    add("[");
    bool is_first = true;
    for (const Value& item : items) {
      if (!is_first) add(style_.item_separator);
      is_first = false;
      new_line(level + 1);
      CAIRN_TRY(write(item, level + 1));
    }
    new_line(level);
    add("]");
    return Ok{};
  }

  Status key(const Value& key) {
    switch (key.kind()) {
      case Kind::string:
        return quoted(key.marked());
      case Kind::none:
        add("\"null\"");
        return Ok{};
      case Kind::boolean:
        add(key.as_boolean() ? "\"true\"" : "\"false\"");
        return Ok{};
      case Kind::integer:
        add("\"" + std::to_string(key.as_integer()) + "\"");
        return Ok{};
      case Kind::real:
        add("\"" + real(key.as_real()) + "\"");
        return Ok{};
      default:
        return wrong_type("a key for tojson", "a string, a number or none", key);
    }
  }

  Status dict(const DictObject& dict, size_t level) {
    if (dict.entries.empty()) return add("{}"), Status(Ok{});
    std::vector<const Entry*> order;
    order.reserve(dict.entries.size());
    for (const Entry& entry : dict.entries) order.push_back(&entry);
    if (style_.sort_keys) {
      for (const Entry* entry : order) {
        if (entry->first.is(Kind::string) != order[0]->first.is(Kind::string)) {
          return wrong_type("sort_keys", "keys of one type", entry->first);
        }
      }
      CAIRN_TRY(runtime_.work(sorting_work(dict.entries)));
      std::stable_sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
        return compare_keys(a->first, b->first) < 0;
      });
    }
    add("{");
    for (const Entry* entry : order) {
      if (entry != order[0]) add(style_.item_separator);
      new_line(level + 1);
      CAIRN_TRY(key(entry->first));
      add(style_.key_separator);
      CAIRN_TRY(write(entry->second, level + 1));
    }
    new_line(level);
    add("}");
    return Ok{};
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  MarkedText out_;
};

}  // namespace

Result<Value> to_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
  return JsonWriter(runtime, style).run(value);
}

}  // namespace cairn::jinja
