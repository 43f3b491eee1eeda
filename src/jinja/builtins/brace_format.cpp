// `'{} {name.attribute[0]:>8}'.format(…)`: Format String Syntax of the Python library reference,
// with the look-ups of the sandbox.
#include <algorithm>

#include "jinja/builtins/percent_format.h"
#include "jinja/characters.h"
#include "jinja/operations.h"
#include "jinja/values/number_format.h"
#include "jinja/values/text_form.h"

namespace cairn::jinja {
namespace {

// What a field costs, beside what stands in it.
constexpr size_t kFieldWork = 512;

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

class BraceFormat {
 public:
  BraceFormat(Runtime& runtime, const Arguments& arguments)
      : runtime_(runtime), arguments_(arguments) {}

  // A spec may hold fields itself, but those hold no more.
  Result<MarkedText> expand(const MarkedText& format, int depth) {
    MarkedText out;
    const std::string_view text = format.bytes();
    for (size_t at = 0; at < text.size();) {
      CAIRN_TRY(runtime_.work(8));
      if (text[at] != '{' && text[at] != '}') {
        const size_t end = std::min(text.find_first_of("{}", at), text.size());
        CAIRN_TRY(check(out.size(), end - at));
        out.append(format, at, end);
        at = end;
      } else if (at + 1 < text.size() && text[at + 1] == text[at] && depth == 0) {
        out.append(format, at, at + 1);
        at += 2;
      } else if (text[at] == '}') {
        return fail(kRunFailed, "format: expected '{{' before a single '}}', found none");
      } else {
        CAIRN_TRY(const size_t end, end_of_field(text, at + 1));
        CAIRN_TRY(runtime_.work(kFieldWork + (end - at) * kCharacterWork));
        CAIRN_TRY(const MarkedText made, field(format.slice(at + 1, end), depth));
        CAIRN_TRY(check(out.size(), made.size()));
        out.append(made);
        at = end + 1;
      }
    }
    return out;
  }

 private:
  Status check(size_t size, size_t more) {
    CAIRN_TRY(runtime_.work(more));
    return runtime_.check_string(size + more);
  }

  static Result<size_t> end_of_field(std::string_view text, size_t at) {
    int depth = 1;
    for (; at < text.size(); ++at) {
      depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
      if (depth == 0) return at;
    }
    return fail(kRunFailed, "format: expected '}}' at the end of a field, found none");
  }

  Result<MarkedText> field(const MarkedText& field, int depth) {
    const std::string_view text = field.bytes();
    size_t name_end = 0;
    for (bool in_brackets = false; name_end < text.size(); ++name_end) {
      if (text[name_end] == '[') in_brackets = true;
      if (text[name_end] == ']') in_brackets = false;
      if (!in_brackets && (text[name_end] == ':' || text[name_end] == '!')) break;
    }
    CAIRN_TRY(Value value, find(text.substr(0, name_end)));
    size_t at = name_end;
    if (at < text.size() && text[at] == '!') {
      const char conversion = at + 1 < text.size() ? text[at + 1] : '\0';
      if (conversion != 's' && conversion != 'r' && conversion != 'a') {
        return fail(kRunFailed, "format: expected the conversion s, r or a, found another");
      }
      MarkedText form;
      if (conversion == 's') {
        CAIRN_TRY(append_text(runtime_, form, value));
      } else {
        CAIRN_TRY(append_repr(runtime_, form, value, conversion == 'a'));
      }
      CAIRN_TRY(value, runtime_.string(std::move(form)));
      at += 2;
    }
    if (at < text.size() && text[at] != ':') {
      return fail(kRunFailed, "format: expected ':' after a field's name, found another sign");
    }
    MarkedText spec_text = at < text.size() ? field.slice(at + 1, text.size()) : MarkedText();
    if (spec_text.bytes().find('{') != std::string_view::npos) {
      if (depth > 0) return fail(kRunFailed, "format: expected fields in fields once, found more");
      CAIRN_TRY(spec_text, expand(spec_text, depth + 1));
    }
    if (spec_text.empty()) {
      CAIRN_TRY(const Value whole, to_string(runtime_, value));
      return whole.marked();
    }
    CAIRN_TRY(const FieldSpec spec, parse_field_spec(spec_text.bytes()));
    if (!value.is(Kind::string) && !value.is_number()) {
      return wrong_type("format", "a string or a number for a format spec", value);
    }
    return format_field(runtime_, value, spec);
  }

  Result<Value> first(std::string_view name) {
    if (!name.empty() && !is_number(name)) {
      CAIRN_TRY(runtime_.work(arguments_.named.size() * (8 + name.size() / 4)));
      for (const auto& [key, value] : arguments_.named) {
        if (key == name) return value;
      }
      return fail(kRunFailed, "format: expected an argument '{}', found none", name.substr(0, 60));
    }
    (name.empty() ? counts_fields_ : numbers_fields_) = true;
    if (counts_fields_ && numbers_fields_) {
      return fail(kRunFailed, "format: expected fields with or without numbers, found both");
    }
    const size_t index = name.empty() ? automatic_++ : size_t(std::stoul(std::string(name)));
    if (index < arguments_.positional.size()) return arguments_.positional[index];
    return fail(kRunFailed, "format: expected at least {} arguments, found {}", index + 1,
                arguments_.positional.size());
  }

  Result<Value> find(std::string_view path) {
    size_t at = std::min(path.find_first_of(".["), path.size());
    CAIRN_TRY(Value value, first(path.substr(0, at)));
    while (at < path.size()) {
      CAIRN_TRY(runtime_.step());
      const bool is_item = path[at] == '[';
      const size_t begin = at + 1;
      const size_t end =
          std::min(is_item ? path.find(']', begin) : path.find_first_of(".[", begin), path.size());
      const std::string_view name = path.substr(begin, end - begin);
      if (name.empty() || (is_item && end == path.size())) {
        return fail(kRunFailed, "format: expected a name after '{}', found none", path[at]);
      }
      at = is_item ? end + 1 : end;
      CAIRN_TRY(const Value key, runtime_.string(std::string(name), true));
      if (is_item && is_number(name)) {
        CAIRN_TRY(value,
                  item_of(runtime_, value, Value::integer(int64_t(std::stoul(std::string(name))))));
      } else if (is_item) {
        CAIRN_TRY(value, item_of(runtime_, value, key));
      } else {
        CAIRN_TRY(value, attribute_of(runtime_, value, key));
      }
      if (value.is(Kind::undefined)) return undefined_error(value);
    }
    return value;
  }

  Runtime& runtime_;
  const Arguments& arguments_;
  size_t automatic_ = 0;
  bool counts_fields_ = false;
  bool numbers_fields_ = false;
};

}  // namespace

Result<Value> brace_format(Runtime& runtime, const Value& format, const Arguments& arguments) {
  CAIRN_TRY(MarkedText text, BraceFormat(runtime, arguments).expand(format.marked(), 0));
  CAIRN_TRY(Value made, runtime.string(std::move(text)));
  made.set_markup(format.is_markup());
  return made;
}

}  // namespace cairn::jinja
