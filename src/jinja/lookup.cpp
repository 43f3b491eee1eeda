// The other half of operations.h: attributes, elements, slices and walks.
#include <algorithm>

#include "jinja/builtins/methods.h"
#include "jinja/characters.h"
#include "jinja/operations.h"
#include "jinja/syntax/syntax.h"
#include "jinja/values/objects.h"
#include "jinja/values/text_form.h"

namespace cairn::jinja {
namespace {

Result<Value> missing_attribute(Missing why, const Value& object, const Value& name) {
  return Value::undefined(why, object.kind(), name.pointer());
}

Result<Value> loop_attribute(const Value& object, const Value& name) {
  const LoopObject& loop = object.as<LoopObject>();
  const std::string_view word = name.text();
  const int64_t index = int64_t(loop.index);
  const int64_t length = int64_t(loop.length);
  if (word == "index") return Value::integer(index + 1);
  if (word == "index0") return Value::integer(index);
  if (word == "revindex") return Value::integer(length - index);
  if (word == "revindex0") return Value::integer(length - index - 1);
  if (word == "first") return Value::boolean(index == 0);
  if (word == "last") return Value::boolean(index + 1 == length);
  if (word == "length") return Value::integer(length);
  if (word == "depth") return Value::integer(loop.depth + 1);
  if (word == "depth0") return Value::integer(loop.depth);
  if (word == "previtem" || word == "nextitem") {
    const Value& neighbour = word[0] == 'p' ? loop.previous : loop.next;
    if (neighbour.is(Kind::absent)) return missing_attribute(Missing::attribute, object, name);
    return neighbour;
  }
  return missing_attribute(Missing::attribute, object, name);
}

Result<Value> macro_attribute(Runtime& runtime, const Value& object, const Value& name) {
  const MacroObject& macro = object.as<MacroObject>();
  const std::string_view word = name.text();
  if (word == "name") return macro.name;
  if (word == "caller") return Value::boolean(macro.shape.uses_caller);
  if (word == "catch_kwargs") return Value::boolean(macro.shape.uses_kwargs);
  if (word == "catch_varargs") return Value::boolean(macro.shape.uses_varargs);
  if (word != "arguments" && word != "explicit_caller") {
    return missing_attribute(Missing::attribute, object, name);
  }
  CAIRN_TRY(runtime.work(macro.shape.parameters.size() * kElementWork));
  std::vector<Value> parameters;
  for (const Name parameter : macro.shape.parameters) parameters.push_back(macro.names[parameter]);
  if (word == "arguments") return runtime.tuple(std::move(parameters));
  const auto is_caller = [](const Value& parameter) { return parameter.text() == "caller"; };
  return Value::boolean(std::any_of(parameters.begin(), parameters.end(), is_caller));
}

// The value under a name that is no method; absent where there is none.
Result<Value> member(Runtime& runtime, const Value& object, const Value& name) {
  if (object.is(Kind::dict)) {
    CAIRN_TRY(const Value* const found, runtime.find(object.as<DictObject>(), name.text()));
    return found == nullptr ? Value() : *found;
  }
  if (object.is(Kind::namespace_)) {
    CAIRN_TRY(runtime.work(object.as<NamespaceObject>().find_work(name.text())));
    const Value* found = object.as<NamespaceObject>().find(name.text());
    return found == nullptr ? Value() : *found;
  }
  if (object.is(Kind::tuple) && object.as<ListObject>().is_group) {
    if (name.text() == "grouper") return object.items()[0];
    if (name.text() == "list") return object.items()[1];
  }
  if (object.is(Kind::cycler) && name.text() == "current") {
    const CyclerObject& cycler = object.as<CyclerObject>();
    return cycler.items[cycler.position];
  }
  return Value();
}

Result<Value> method_of(Runtime& runtime, const Value& object, const Value& name) {
  if (name.text().substr(0, 2) == "__") return missing_attribute(Missing::unsafe, object, name);
  const auto method = find_method(object.kind(), name.text());
  if (!method) return Value();
  if (!method_is_safe(*method)) return missing_attribute(Missing::unsafe, object, name);
  return runtime.heap().adopt(Kind::method, new MethodObject(object, *method));
}

// Where Python finds element `index` of `size`; nothing where it is out of range.
std::optional<size_t> position_of(int64_t index, size_t size) {
  const int64_t position = index < 0 ? index + int64_t(size) : index;
  if (position < 0 || position >= int64_t(size)) return std::nullopt;
  return size_t(position);
}

Result<Value> element_of(Runtime& runtime, const Value& object, int64_t index) {
  if (object.is(Kind::string)) {
    const StringObject& string = object.as<StringObject>();
    const auto position = position_of(index, string.character_count);
    if (!position) return Value();
    size_t begin = *position;
    if (!string.is_ascii()) {
      CAIRN_TRY(runtime.work(*position * kCharacterWork));
      begin = offset_of_character(string.text.bytes(), *position);
    }
    const size_t end = next_character(string.text.bytes(), begin);
    CAIRN_TRY(Value made, runtime.string(string.text.slice(begin, end)));
    made.set_markup(object.is_markup());
    return made;
  }
  if (object.is_sequence()) {
    const auto position = position_of(index, object.items().size());
    return position ? object.items()[*position] : Value();
  }
  if (object.is(Kind::range)) {
    const RangeObject& range = object.as<RangeObject>();
    const auto position = position_of(index, range.size());
    return position ? Value::integer(range.at(*position)) : Value();
  }
  return Value();
}

struct Bounds {
  int64_t start;
  int64_t step;
  size_t count;
};

Result<int64_t> slice_bound(const Value& value, int64_t fallback, int64_t low, int64_t high,
                            int64_t size) {
  if (value.is(Kind::none)) return fallback;
  CAIRN_TRY(int64_t bound, integer_argument("a slice", value));
  if (bound < 0) bound = bound < -size ? low : bound + size;
  return std::clamp(bound, low, high);
}

Result<Bounds> bounds_of(int64_t size, const Value& start, const Value& stop, const Value& step) {
  int64_t stride = 1;
  if (!step.is(Kind::none)) {
    CAIRN_TRY(stride, integer_argument("a slice", step));
  }
  if (stride == 0) return fail(kRunFailed, "a slice: expected a step other than 0, found 0");
  const int64_t low = stride > 0 ? 0 : -1;
  const int64_t high = stride > 0 ? size : size - 1;
  CAIRN_TRY(const int64_t first, slice_bound(start, stride > 0 ? low : high, low, high, size));
  CAIRN_TRY(const int64_t last, slice_bound(stop, stride > 0 ? high : low, low, high, size));
  stride = std::clamp(stride, -(size + 1), size + 1);
  const int64_t distance = stride > 0 ? last - first : first - last;
  const int64_t stride_size = stride > 0 ? stride : -stride;
  return Bounds{first, stride, distance > 0 ? size_t((distance - 1) / stride_size + 1) : size_t(0)};
}

Result<Value> slice_of_string(Runtime& runtime, const Value& object, const Bounds& bounds) {
  const StringObject& string = object.as<StringObject>();
  const std::string_view bytes = string.text.bytes();
  CAIRN_TRY(runtime.prepare_string(bytes.size()));
  MarkedText text;
  if (!string.is_ascii()) CAIRN_TRY(runtime.work(bytes.size() * kCharacterWork));
  if (bounds.step == 1) {
    const size_t begin =
        string.is_ascii() ? size_t(bounds.start) : offset_of_character(bytes, size_t(bounds.start));
    const size_t end = string.is_ascii()
                           ? begin + bounds.count
                           : begin + offset_of_character(bytes.substr(begin), bounds.count);
    if (bounds.count > 0) text = string.text.slice(begin, end);
  } else {
    std::vector<uint32_t> starts;
    if (!string.is_ascii()) {
      starts.reserve(string.character_count);
      for (size_t i = 0; i < bytes.size(); i = next_character(bytes, i)) {
        starts.push_back(uint32_t(i));
      }
    }
    CAIRN_TRY(runtime.work(bounds.count * kPropertyWork));
    text.reserve(bounds.count);
    for (size_t i = 0; i < bounds.count; ++i) {
      const size_t character = size_t(bounds.start + int64_t(i) * bounds.step);
      const size_t begin = starts.empty() ? character : starts[character];
      text.append(string.text, begin, next_character(bytes, begin));
    }
  }
  CAIRN_TRY(Value made, runtime.string(std::move(text)));
  made.set_markup(object.is_markup());
  return made;
}

}  // namespace

Result<Value> attribute_of(Runtime& runtime, const Value& object, const Value& name) {
  if (object.is(Kind::undefined)) return undefined_error(object);
  if (object.is(Kind::namespace_)) {
    CAIRN_TRY(Value found, member(runtime, object, name));
    if (!found.is(Kind::absent)) return found;
  }
  CAIRN_TRY(Value found, method_of(runtime, object, name));
  if (!found.is(Kind::absent)) return found;
  if (object.is(Kind::loop)) return loop_attribute(object, name);
  if (object.is(Kind::macro)) return macro_attribute(runtime, object, name);
  CAIRN_TRY(found, member(runtime, object, name));
  if (!found.is(Kind::absent)) return found;
  return missing_attribute(Missing::attribute, object, name);
}

Result<Value> item_of(Runtime& runtime, const Value& object, const Value& key) {
  if (object.is(Kind::undefined)) return undefined_error(object);
  if (object.is(Kind::dict) && is_key(key)) {
    CAIRN_TRY(const Value* const found, runtime.find(object.as<DictObject>(), key));
    if (found != nullptr) return *found;
  } else if (key.is_whole()) {
    CAIRN_TRY(Value found, element_of(runtime, object, key.as_integer()));
    if (!found.is(Kind::absent)) return found;
  }
  if (key.is(Kind::string)) {
    if (!object.is(Kind::dict)) return attribute_of(runtime, object, key);
    CAIRN_TRY(Value found, method_of(runtime, object, key));
    if (!found.is(Kind::absent)) return found;
    return missing_attribute(Missing::attribute, object, key);
  }
  CAIRN_TRY(const Value name, to_string(runtime, key));
  return missing_attribute(Missing::element, object, name);
}

Result<Value> slice_of(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                       const Value& step) {
  if (object.is(Kind::undefined)) return undefined_error(object);
  if (!object.is(Kind::string) && !object.is_sequence() && !object.is(Kind::range)) {
    return wrong_type("a slice", "a string or a list", object);
  }
  CAIRN_TRY(const int64_t size, length_of(object));
  CAIRN_TRY(const Bounds bounds, bounds_of(size, start, stop, step));
  if (object.is(Kind::string)) return slice_of_string(runtime, object, bounds);
  if (object.is(Kind::range)) {
    const RangeObject& whole = object.as<RangeObject>();
    auto* range = new RangeObject;
    range->start = whole.start + bounds.start * whole.step;
    range->step = whole.step * bounds.step;
    range->stop = range->start + int64_t(bounds.count) * range->step;
    return runtime.heap().adopt(Kind::range, range);
  }
  CAIRN_TRY(runtime.prepare_items(bounds.count));
  std::vector<Value> items;
  items.reserve(bounds.count);
  for (size_t i = 0; i < bounds.count; ++i) {
    items.push_back(object.items()[size_t(bounds.start + int64_t(i) * bounds.step)]);
  }
  return runtime.list(std::move(items), object.kind());
}

Result<Iterator> Iterator::over(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::string:
    case Kind::list:
    case Kind::tuple:
    case Kind::dict:
    case Kind::view:
    case Kind::generator:
    case Kind::range:
      break;
    default:
      return wrong_type("a loop", "a value that can be walked", value);
  }
  Iterator walk;
  walk.value_ = value;
  return walk;
}

Result<bool> Iterator::next(Runtime& runtime, Value& out) {
  const size_t left = remaining();
  if (left == 0) return false;
  ++walked_;
  switch (value_.kind()) {
    case Kind::string: {
      const MarkedText& text = value_.marked();
      const size_t end = next_character(text.bytes(), at_);
      CAIRN_TRY(out, runtime.string(text.slice(at_, end)));
      at_ = end;
      return true;
    }
    case Kind::list:
    case Kind::tuple:
      out = value_.items()[at_++];
      return true;
    case Kind::generator: {
      GeneratorObject& generator = value_.as<GeneratorObject>();
      out = generator.items[generator.next++];
      return true;
    }
    case Kind::range:
      out = Value::integer(value_.as<RangeObject>().at(at_++));
      return true;
    default:
      break;
  }
  const bool is_view = value_.is(Kind::view);
  const Value& dict = is_view ? value_.as<ViewObject>().dict : value_;
  const ViewOf which = is_view ? value_.as<ViewObject>().which : ViewOf::keys;
  const Entry& entry = dict.as<DictObject>().entries[at_++];
  if (which == ViewOf::items) {
    CAIRN_TRY(runtime.work(kElementWork));
    CAIRN_TRY(out, runtime.tuple({entry.first, entry.second}));
  } else {
    out = which == ViewOf::keys ? entry.first : entry.second;
  }
  return true;
}

size_t Iterator::remaining() const {
  switch (value_.kind()) {
    case Kind::string:
      return value_.as<StringObject>().character_count - walked_;
    case Kind::list:
    case Kind::tuple:
      return value_.items().size() - at_;
    case Kind::dict:
      return value_.as<DictObject>().entries.size() - at_;
    case Kind::view:
      return value_.as<ViewObject>().dict.as<DictObject>().entries.size() - at_;
    case Kind::range:
      return value_.as<RangeObject>().size() - at_;
    case Kind::generator: {
      const GeneratorObject& generator = value_.as<GeneratorObject>();
      return generator.items.size() - generator.next;
    }
    default:
      return 0;
  }
}

Result<std::vector<Value>> items_of(Runtime& runtime, const Value& value) {
  CAIRN_TRY(Iterator walk, Iterator::over(value));
  CAIRN_TRY(runtime.prepare_items(walk.remaining()));
  std::vector<Value> items;
  items.reserve(walk.remaining());
  while (true) {
    Value item;
    CAIRN_TRY(const bool more, walk.next(runtime, item));
    if (!more) return items;
    items.push_back(std::move(item));
  }
}

}  // namespace cairn::jinja
