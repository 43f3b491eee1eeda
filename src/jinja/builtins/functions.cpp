// range, dict, namespace, cycler, joiner of Jinja; raise_exception and strftime_now of Hugging
// Face. lipsum, which is random, is left out.
#include "jinja/builtins/functions.h"

#include "jinja/builtins/strftime.h"
#include "jinja/operations.h"
#include "jinja/values/objects.h"
#include "jinja/values/text_form.h"

namespace cairn::jinja {
namespace {

using Args = std::span<const Value>;

// Error messages pass through logs and HTTP bodies, so what a template says is cut.
constexpr size_t kMessageBytesMax = 1000;

Result<Value> raise_exception(Runtime& runtime, const Value&, Args args) {
  CAIRN_TRY(const Value message, to_string(runtime, args[0]));
  std::string text(message.text().substr(0, kMessageBytesMax));
  while (!text.empty() && message.text().size() > kMessageBytesMax &&
         (uint8_t(text.back()) & 0x80u) != 0) {
    text.pop_back();
  }
  return fail(kRefusedByTemplate, "{}", text);
}

Result<Value> strftime_now(Runtime& runtime, const Value&, Args args) {
  CAIRN_TRY(const std::string_view format, text_of(args[0], "strftime_now"));
  if (!runtime.clock()) return fail(kRunFailed, "strftime_now: expected a clock, found none");
  if (format.size() > 1000) {
    return fail(kOverBudget, "strftime_now: expected at most 1000 bytes, found {}", format.size());
  }
  constexpr size_t kDirectiveWork = 512;
  CAIRN_TRY(runtime.work((format.size() + 2) * kDirectiveWork));
  const auto text = format_time(format, *runtime.clock());
  if (!text) return fail(kRunFailed, "strftime_now: expected known directives, found '{}'", format);
  return runtime.string(*text, args[0].marked().is_trusted());
}

Result<Value> range(Runtime& runtime, const Value&, Args args) {
  auto* range = new RangeObject;
  CAIRN_TRY(const Value made, runtime.heap().adopt(Kind::range, range));
  CAIRN_TRY(range->stop, integer_argument("range", args[0]));
  if (!args[1].is(Kind::absent)) {
    range->start = range->stop;
    CAIRN_TRY(range->stop, integer_argument("range", args[1]));
    CAIRN_TRY(range->step, integer_or(args[2], 1, "range"));
  }
  if (range->step == 0) return fail(kRunFailed, "range: expected a step other than 0, found 0");
  // Bounds first: within them no difference overflows.
  constexpr int64_t kBound = int64_t{1} << 61;
  const bool is_wide = range->start > kBound || range->start < -kBound || range->stop > kBound ||
                       range->stop < -kBound || range->step > kBound || range->step < -kBound;
  if (is_wide || range->size() > size_t(kRangeMax)) {
    return fail(kOverBudget, "range: expected at most {} elements, found more", kRangeMax);
  }
  return made;
}

Result<Value> dict(Runtime& runtime, const Value&, const Arguments& arguments) {
  CAIRN_TRY(std::vector<Entry> entries, entries_of(runtime, arguments));
  return runtime.dict(std::move(entries));
}

Result<Value> make_namespace(Runtime& runtime, const Value&, const Arguments& arguments) {
  CAIRN_TRY(const std::vector<Entry> entries, entries_of(runtime, arguments));
  auto* names = new NamespaceObject(runtime.heap());
  size_t bytes = entries.size() * 64;
  for (const Entry& entry : entries) bytes += key_work(entry.first);
  CAIRN_TRY(Value made, runtime.heap().adopt(Kind::namespace_, names, bytes));
  if (entries.size() > 1000) {
    return fail(kOverBudget, "namespace: expected at most 1000 names, found {}", entries.size());
  }
  CAIRN_TRY(runtime.work(kObjectWork + bytes));
  for (const auto& [key, value] : entries) {
    CAIRN_TRY(const std::string_view name, text_of(key, "namespace"));
    CAIRN_TRY(runtime.work(names->find_work(name)));
    if (name.starts_with('_')) {
      return fail(kRunFailed, "namespace: expected names without '_' in front, found '{}'",
                  name.substr(0, 60));
    }
    names->set(name, value);
  }
  return made;
}

Result<Value> cycler(Runtime& runtime, const Value&, const Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.named.empty()) {
    return fail(kRunFailed, "cycler: expected at least one value, found none");
  }
  return runtime.heap().adopt(Kind::cycler, new CyclerObject(arguments.positional),
                              arguments.positional.size() * sizeof(Value));
}

Result<Value> joiner(Runtime& runtime, const Value&, Args args) {
  Value separator = args[0];
  if (separator.is(Kind::absent)) {
    CAIRN_TRY(separator, runtime.string(", ", true));
  }
  return runtime.heap().adopt(Kind::joiner, new JoinerObject(separator));
}

constexpr Callable kFunctions[] = {
    {"raise_exception", "message", raise_exception},
    {"strftime_now", "format", strftime_now},
    {"range", "start stop= step=", range},
    {"dict", "", nullptr, dict},
    {"namespace", "", nullptr, make_namespace},
    {"cycler", "", nullptr, cycler},
    {"joiner", "sep=", joiner},
};

}  // namespace

std::optional<uint8_t> find_function(std::string_view name) {
  for (uint8_t id = 0; id < std::size(kFunctions); ++id) {
    if (kFunctions[id].name == name) return id;
  }
  return std::nullopt;
}

Result<Value> call_function(Runtime& runtime, uint8_t id, const Arguments& arguments) {
  return invoke(runtime, kFunctions[id], {}, arguments);
}

Result<std::vector<Entry>> entries_of(Runtime& runtime, const Arguments& arguments) {
  std::vector<Entry> entries;
  if (arguments.positional.size() > 1) {
    return fail(kRunFailed, "dict: expected at most one argument without a name, found {}",
                arguments.positional.size());
  }
  if (!arguments.positional.empty() && arguments.positional[0].is(Kind::dict)) {
    const std::vector<Entry>& given = arguments.positional[0].as<DictObject>().entries;
    CAIRN_TRY(runtime.prepare_items(given.size() * 2));
    entries = given;
  } else if (!arguments.positional.empty()) {
    CAIRN_TRY(const std::vector<Value> pairs, items_of(runtime, arguments.positional[0]));
    for (const Value& pair : pairs) {
      CAIRN_TRY(const std::vector<Value> parts, items_of(runtime, pair));
      if (parts.size() != 2) {
        return fail(kRunFailed, "dict: expected pairs, found {} elements", parts.size());
      }
      if (!is_key(parts[0])) return wrong_type("dict", "a value that can be a key", parts[0]);
      entries.emplace_back(parts[0], parts[1]);
    }
  }
  for (const auto& [name, value] : arguments.named) {
    CAIRN_TRY(Value key, runtime.string(name, true));
    entries.emplace_back(std::move(key), value);
  }
  return entries;
}

}  // namespace cairn::jinja
