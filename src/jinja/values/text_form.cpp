// str() and repr(). Containers nest at most kNestingMax deep, so the recursion is bounded; a
// namespace inside its own value is cut short.
#include "jinja/values/text_form.h"

#include <charconv>
#include <cmath>

#include "jinja/characters.h"
#include "jinja/operations.h"
#include "jinja/values/objects.h"
#include "unicode/unicode.h"

namespace cairn::jinja {
namespace {

class Form {
 public:
  Form(Runtime& runtime, MarkedText& out, bool is_ascii = false)
      : runtime_(runtime), out_(out), is_ascii_(is_ascii) {}

  Status text(const Value& value) {
    if (value.is(Kind::undefined)) return Ok{};
    if (!value.is(Kind::string)) return repr(value);
    CAIRN_TRY(check(value.text().size()));
    out_.append(value.marked());
    return Ok{};
  }

  Status repr(const Value& value) {
    CAIRN_TRY(check(64));
    const bool trusted = !value.is_users();
    switch (value.kind()) {
      case Kind::none:
        out_.append("None", trusted);
        return Ok{};
      case Kind::boolean:
        out_.append(value.as_boolean() ? "True" : "False", trusted);
        return Ok{};
      case Kind::integer:
        out_.append(std::to_string(value.as_integer()), trusted);
        return Ok{};
      case Kind::real:
        out_.append(real_repr(value.as_real()), trusted);
        return Ok{};
      case Kind::string:
        return quoted(value.marked());
      case Kind::list:
        return items("[", value.items(), "]");
      case Kind::tuple:
        return items("(", value.items(), value.items().size() == 1 ? ",)" : ")");
      case Kind::dict:
        return entries(value.as<DictObject>().entries);
      case Kind::view:
        return view(value.as<ViewObject>());
      case Kind::namespace_:
        return names(value.as<NamespaceObject>());
      case Kind::range:
        return range(value.as<RangeObject>());
      case Kind::undefined:
        add("Undefined");
        return Ok{};
      case Kind::macro:
        return macro(value.as<MacroObject>());
      default:
        add("<" + std::string(name_of(value.kind())) + ">");
        return Ok{};
    }
  }

 private:
  void add(std::string_view text) { out_.append(text, false); }

  Status check(size_t more) {
    CAIRN_TRY(runtime_.work(more));
    return runtime_.check_string(out_.size() + more);
  }

  Status quoted(const MarkedText& text) {
    const std::string_view bytes = text.bytes();
    CAIRN_TRY(check(bytes.size() * 10));  // \U0001f600 is the longest escape.
    CAIRN_TRY(runtime_.work(bytes.size() * kPropertyWork));
    OriginWalk origin(text);
    const bool double_quotes = bytes.find('\'') != bytes.npos && bytes.find('"') == bytes.npos;
    const char quote = double_quotes ? '"' : '\'';
    add({&quote, 1});
    for (size_t at = 0; at < bytes.size();) {
      const size_t end = next_character(bytes, at);
      const char32_t code = character_at(bytes, at);
      const bool trusted = origin.is_trusted_at(at);
      if (code == '\\' || code == char32_t(quote)) {
        out_.append(std::string{'\\', char(code)}, trusted);
      } else if (code == '\n' || code == '\r' || code == '\t') {
        out_.append(code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t", trusted);
      } else if (is_printable(code) && (code < 0x80 || !is_ascii_)) {
        out_.append(bytes.substr(at, end - at), trusted);
      } else {
        constexpr size_t kEscapeWork = 256;
        CAIRN_TRY(runtime_.work(kEscapeWork));
        const uint32_t number = uint32_t(code);
        out_.append(number < 0x100     ? fmt::format("\\x{:02x}", number)
                    : number < 0x10000 ? fmt::format("\\u{:04x}", number)
                                       : fmt::format("\\U{:08x}", number),
                    trusted);
      }
      at = end;
    }
    add({&quote, 1});
    return Ok{};
  }

  Status items(std::string_view open, const std::vector<Value>& values, std::string_view close) {
    add(open);
    bool is_first = true;
    for (const Value& value : values) {
      if (!is_first) add(", ");
      is_first = false;
      CAIRN_TRY(runtime_.work(64));
      CAIRN_TRY(repr(value));
    }
    add(close);
    return Ok{};
  }

  Status entries(const std::vector<Entry>& values) {
    add("{");
    bool is_first = true;
    for (const auto& [key, value] : values) {
      if (!is_first) add(", ");
      is_first = false;
      CAIRN_TRY(runtime_.work(64));
      CAIRN_TRY(repr(key));
      add(": ");
      CAIRN_TRY(repr(value));
    }
    add("}");
    return Ok{};
  }

  Status view(const ViewObject& view) {
    add(view.which == ViewOf::keys     ? "dict_keys(["
        : view.which == ViewOf::values ? "dict_values(["
                                       : "dict_items([");
    bool is_first = true;
    for (const auto& [key, value] : view.dict.as<DictObject>().entries) {
      if (!is_first) add(", ");
      is_first = false;
      if (view.which == ViewOf::items) add("(");
      if (view.which != ViewOf::values) CAIRN_TRY(repr(key));
      if (view.which == ViewOf::items) add(", ");
      if (view.which != ViewOf::keys) CAIRN_TRY(repr(value));
      if (view.which == ViewOf::items) add(")");
    }
    add("])");
    return Ok{};
  }

  Status names(const NamespaceObject& names) {
    if (++namespace_depth_ > 4) {
      return fail(kRunFailed, "a namespace as text: expected nesting of at most 4, found more");
    }
    add("<Namespace {");
    bool is_first = true;
    for (const auto& [name, value] : names.entries) {
      if (!is_first) add(", ");
      is_first = false;
      CAIRN_TRY(check(64 + name.size()));
      add("'" + name + "': ");
      CAIRN_TRY(repr(value));
    }
    add("}>");
    --namespace_depth_;
    return Ok{};
  }

  Status macro(const MacroObject& macro) {
    if (macro.name.is(Kind::none)) {
      add("<Macro anonymous>");
      return Ok{};
    }
    add("<Macro ");
    CAIRN_TRY(repr(macro.name));
    add(">");
    return Ok{};
  }

  Status range(const RangeObject& range) {
    add(fmt::format("range({}, {}", range.start, range.stop));
    add(range.step == 1 ? ")" : fmt::format(", {})", range.step));
    return Ok{};
  }

  Runtime& runtime_;
  MarkedText& out_;
  bool is_ascii_;
  int namespace_depth_ = 0;
};

}  // namespace

std::string real_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view text(buffer, size_t(end.ptr - buffer));
  const size_t mark = text.find('e');
  int exponent = 0;
  const size_t sign = mark + 1 + (text[mark + 1] == '+');
  std::from_chars(text.data() + sign, text.data() + text.size(), exponent);
  const bool is_negative = text[0] == '-';
  std::string digits;
  for (const char c : text.substr(0, mark)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  std::string out = is_negative ? "-" : "";
  // Python's repr turns to exponents below 1e-4 and from 1e16.
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (digits.size() > 1) out += "." + digits.substr(1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return out + "0." + std::string(size_t(-exponent - 1), '0') + digits;
  const size_t whole = size_t(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

Status append_text(Runtime& runtime, MarkedText& out, const Value& value) {
  return Form(runtime, out).text(value);
}

Status append_repr(Runtime& runtime, MarkedText& out, const Value& value, bool is_ascii) {
  return Form(runtime, out, is_ascii).repr(value);
}

Result<Value> to_string(Runtime& runtime, const Value& value) {
  if (value.is(Kind::string)) return value;
  MarkedText text;
  CAIRN_TRY(append_text(runtime, text, value));
  return runtime.string(std::move(text));
}

}  // namespace cairn::jinja
