// Methods of containers and of Jinja's objects, and the look-up over all tables.
#include "jinja/builtins/methods.h"

#include <algorithm>
#include <cmath>

#include "jinja/operations.h"
#include "jinja/values/objects.h"

namespace cairn::jinja {
namespace {

using Args = std::span<const Value>;

Result<Value> dict_get(Runtime& runtime, const Value& self, Args args) {
  if (is_key(args[0])) {
    CAIRN_TRY(const Value* const found, runtime.find(self.as<DictObject>(), args[0]));
    if (found != nullptr) return *found;
  } else if (is_unhashable(args[0])) {
    return wrong_type("get", "a value that can be a key", args[0]);
  }
  return args[1].is(Kind::absent) ? Value::none() : args[1];
}

template <ViewOf which>
Result<Value> dict_view(Runtime& runtime, const Value& self, Args) {
  auto* view = new ViewObject(self, which);
  view->set_nesting(self.pointer()->nesting());
  return runtime.heap().adopt(Kind::view, view);
}

// Lists and dicts never change, so a copy is the same.
Result<Value> itself(Runtime&, const Value& self, Args) {
  return self;
}

Result<Value> sequence_count(Runtime& runtime, const Value& self, Args args) {
  int64_t total = 0;
  CAIRN_TRY(runtime.work(self.items().size() * kElementWork));
  for (const Value& item : self.items()) {
    CAIRN_TRY(const bool same, equal(runtime, item, args[0]));
    total += same;
  }
  return Value::integer(total);
}

Result<Value> sequence_index(Runtime& runtime, const Value& self, Args args) {
  const int64_t size = int64_t(self.items().size());
  CAIRN_TRY(int64_t first, integer_or(args[1], 0, "index"));
  CAIRN_TRY(int64_t last, integer_or(args[2], size, "index"));
  first = std::clamp<int64_t>(first < 0 ? first + size : first, 0, size);
  last = std::clamp<int64_t>(last < 0 ? last + size : last, 0, size);
  CAIRN_TRY(runtime.work(self.items().size() * kElementWork));
  for (int64_t i = first; i < last; ++i) {
    CAIRN_TRY(const bool same, equal(runtime, self.items()[size_t(i)], args[0]));
    if (same) return Value::integer(i);
  }
  return fail(kRunFailed, "index: expected the value in the list, found none");
}

Result<Value> unsafe(Runtime&, const Value&, const Arguments&) {
  return fail(kRunFailed, "expected a method that changes nothing, found one that does");
}

Result<Value> loop_cycle(Runtime&, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) {
    return fail(kRunFailed, "loop.cycle: expected at least one value, found none");
  }
  return arguments.positional[self.as<LoopObject>().index % arguments.positional.size()];
}

Result<Value> loop_changed(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LoopObject& loop = self.as<LoopObject>();
  bool is_same = loop.has_changed_before && loop.changed.size() == arguments.positional.size();
  for (size_t i = 0; is_same && i < loop.changed.size(); ++i) {
    CAIRN_TRY(is_same, equal(runtime, loop.changed[i], arguments.positional[i]));
  }
  if (!is_same) loop.changed = arguments.positional;
  loop.has_changed_before = true;
  return Value::boolean(!is_same);
}

Result<Value> cycler_next(Runtime&, const Value& self, Args) {
  CyclerObject& cycler = self.as<CyclerObject>();
  const Value value = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return value;
}

Result<Value> cycler_reset(Runtime&, const Value& self, Args) {
  self.as<CyclerObject>().position = 0;
  return Value::none();
}

Result<Value> is_whole(Runtime&, const Value& self, Args) {
  return Value::boolean(std::isfinite(self.as_real()) &&
                        std::floor(self.as_real()) == self.as_real());
}

constexpr Callable kDict[] = {
    {"clear", "", nullptr, unsafe},        {"copy", "", itself},
    {"get", "key default=", dict_get},     {"items", "", dict_view<ViewOf::items>},
    {"keys", "", dict_view<ViewOf::keys>}, {"pop", "", nullptr, unsafe},
    {"popitem", "", nullptr, unsafe},      {"setdefault", "", nullptr, unsafe},
    {"update", "", nullptr, unsafe},       {"values", "", dict_view<ViewOf::values>},
};
constexpr Callable kList[] = {
    {"append", "", nullptr, unsafe},
    {"clear", "", nullptr, unsafe},
    {"copy", "", itself},
    {"count", "value", sequence_count},
    {"extend", "", nullptr, unsafe},
    {"index", "value start= stop=", sequence_index},
    {"insert", "", nullptr, unsafe},
    {"pop", "", nullptr, unsafe},
    {"remove", "", nullptr, unsafe},
    {"reverse", "", nullptr, unsafe},
    {"sort", "", nullptr, unsafe},
};
constexpr Callable kTuple[] = {
    {"count", "value", sequence_count},
    {"index", "value start= stop=", sequence_index},
};
constexpr Callable kLoop[] = {
    {"changed", "", nullptr, loop_changed},
    {"cycle", "", nullptr, loop_cycle},
};
constexpr Callable kCycler[] = {{"next", "", cycler_next}, {"reset", "", cycler_reset}};
constexpr Callable kReal[] = {{"is_integer", "", is_whole}};

struct Table {
  Kind kind;
  std::span<const Callable> (*methods)();
};

template <const auto& table>
std::span<const Callable> span_of() {
  return table;
}

constexpr Table kTables[] = {
    {Kind::string, string_methods}, {Kind::dict, span_of<kDict>}, {Kind::list, span_of<kList>},
    {Kind::tuple, span_of<kTuple>}, {Kind::loop, span_of<kLoop>}, {Kind::cycler, span_of<kCycler>},
    {Kind::real, span_of<kReal>},
};

// An index is the table's number times this, plus the method's.
constexpr uint32_t kTableSize = 256;

const Callable& method_at(uint32_t index) {
  return kTables[index / kTableSize].methods()[index % kTableSize];
}

}  // namespace

std::optional<uint32_t> find_method(Kind kind, std::string_view name) {
  for (uint32_t table = 0; table < std::size(kTables); ++table) {
    if (kTables[table].kind != kind) continue;
    const std::span<const Callable> methods = kTables[table].methods();
    const auto at = std::lower_bound(
        methods.begin(), methods.end(), name,
        [](const Callable& method, std::string_view wanted) { return method.name < wanted; });
    if (at == methods.end() || at->name != name) return std::nullopt;
    return table * kTableSize + uint32_t(at - methods.begin());
  }
  return std::nullopt;
}

bool method_is_safe(uint32_t index) {
  return method_at(index).free_call != unsafe;
}

Result<Value> call_method(Runtime& runtime, uint32_t index, const Value& self,
                          const Arguments& arguments) {
  return invoke(runtime, method_at(index), self, arguments);
}

}  // namespace cairn::jinja
