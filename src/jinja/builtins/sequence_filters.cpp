// Filters over sequences and mappings.
#include <algorithm>
#include <bit>

#include "jinja/builtins/filters.h"
#include "jinja/builtins/predicates.h"
#include "jinja/builtins/string_functions.h"
#include "jinja/operations.h"
#include "jinja/values/objects.h"
#include "jinja/values/text_form.h"

namespace cairn::jinja {
namespace {

using Args = std::span<const Value>;

// `a.b.0`: names, or numbers where all digits.
Result<Value> attribute_path(Runtime& runtime, Value value, const Value& path,
                             const Value& fallback) {
  const auto step = [&](const Value& key) -> Status {
    CAIRN_TRY(runtime.step());
    CAIRN_TRY(value, item_of(runtime, value, key));
    if (value.is(Kind::undefined) && !fallback.is(Kind::absent) && !fallback.is(Kind::none)) {
      value = fallback;
    }
    return Ok{};
  };
  if (path.is(Kind::absent) || path.is(Kind::none)) return value;
  if (!path.is(Kind::string)) {
    CAIRN_TRY(step(path));
    return value;
  }
  const std::string_view text = path.text();
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('.', at), text.size());
    const std::string_view name = text.substr(at, end - at);
    CAIRN_TRY(runtime.work(name.size()));
    const bool is_index = !name.empty() && name.size() < 10 &&
                          name.find_first_not_of("0123456789") == std::string_view::npos;
    if (is_index) {
      CAIRN_TRY(step(Value::integer(std::stoll(std::string(name)))));
    } else {
      CAIRN_TRY(const Value key, runtime.string(std::string(name), true));
      CAIRN_TRY(step(key));
    }
    at = end + 1;
  }
  return value;
}

Result<Value> without_case(Runtime& runtime, const Value& value) {
  if (!value.is(Kind::string)) return value;
  CAIRN_TRY(MarkedText text, with_case(runtime, value.marked(), Case::lower));
  return runtime.string(std::move(text));
}

// Sorts by keys, stably. Comparing can fail, and std::sort must not see an order that changes its
// mind, so this is a merge sort that stops at the first error.
Status merge_sort(Runtime& runtime, const std::vector<Value>& keys, std::vector<size_t>& order,
                  bool descending) {
  std::vector<size_t> merged(order.size());
  for (size_t width = 1; width < order.size(); width *= 2) {
    for (size_t begin = 0; begin < order.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, order.size());
      const size_t end = std::min(begin + 2 * width, order.size());
      size_t left = begin;
      size_t right = middle;
      for (size_t out = begin; out < end; ++out) {
        bool takes_right = left == middle;
        if (left < middle && right < end) {
          CAIRN_TRY(runtime.step());
          const Value& a = keys[order[descending ? left : right]];
          const Value& b = keys[order[descending ? right : left]];
          CAIRN_TRY(takes_right, comparison(runtime, Operation::less, a, b));
        }
        merged[out] = order[takes_right ? right++ : left++];
      }
    }
    order.swap(merged);
  }
  return Ok{};
}

Result<std::vector<Value>> sorted_by(Runtime& runtime, const std::vector<Value>& items,
                                     const std::vector<Value>& keys, bool descending) {
  CAIRN_TRY(runtime.prepare_items(items.size() * 4));
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  CAIRN_TRY(merge_sort(runtime, keys, order, descending));
  std::vector<Value> sorted;
  sorted.reserve(items.size());
  for (const size_t i : order) sorted.push_back(items[i]);
  return sorted;
}

Result<Value> dictsort(Runtime& runtime, const Value& self, Args args) {
  if (!self.is(Kind::dict)) return wrong_type("dictsort", "a dict", self);
  const bool by_value = args[1].is(Kind::string) && args[1].text() == "value";
  if (!args[1].is(Kind::absent) && !by_value &&
      !(args[1].is(Kind::string) && args[1].text() == "key")) {
    return fail(kRunFailed, "dictsort: expected by 'key' or 'value', found something else");
  }
  std::vector<Value> keys;
  std::vector<Value> pairs;
  CAIRN_TRY(runtime.prepare_items(self.as<DictObject>().entries.size()));
  for (const auto& [key, value] : self.as<DictObject>().entries) {
    Value by = by_value ? value : key;
    if (!truth_or(args[0], false)) {
      CAIRN_TRY(by, without_case(runtime, by));
    }
    keys.push_back(std::move(by));
    CAIRN_TRY(Value pair, runtime.tuple({key, value}));
    pairs.push_back(std::move(pair));
  }
  CAIRN_TRY(std::vector<Value> sorted, sorted_by(runtime, pairs, keys, truth_or(args[2], false)));
  return runtime.list(std::move(sorted));
}

// The sort key: the attribute, or a list of several where the path has commas.
Result<Value> sort_key(Runtime& runtime, const Value& item, const Value& attribute,
                       bool with_cases) {
  const auto one = [&](const Value& path) -> Result<Value> {
    CAIRN_TRY(Value key, attribute_path(runtime, item, path, {}));
    if (with_cases) return key;
    return without_case(runtime, key);
  };
  if (!attribute.is(Kind::string)) return one(attribute);
  CAIRN_TRY(runtime.work(attribute.text().size()));
  if (attribute.text().find(',') == std::string_view::npos) return one(attribute);
  std::vector<Value> keys;
  const std::string_view text = attribute.text();
  CAIRN_TRY(runtime.work(text.size()));
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    CAIRN_TRY(const Value path, runtime.string(std::string(text.substr(at, end - at)), true));
    CAIRN_TRY(Value key, one(path));
    keys.push_back(std::move(key));
    at = end + 1;
  }
  return runtime.list(std::move(keys));
}

Result<Value> sort(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const std::vector<Value> items, items_of(runtime, self));
  std::vector<Value> keys;
  for (const Value& item : items) {
    CAIRN_TRY(Value key, sort_key(runtime, item, args[2], truth_or(args[1], false)));
    // As a list, of which equal elements are not compared: all may lack the attribute.
    if (!key.is_number() && !key.is(Kind::string)) {
      CAIRN_TRY(key, runtime.list({key}));
    }
    keys.push_back(std::move(key));
  }
  CAIRN_TRY(std::vector<Value> sorted, sorted_by(runtime, items, keys, truth_or(args[0], false)));
  return runtime.list(std::move(sorted));
}

template <Operation better>
Result<Value> extreme(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const std::vector<Value> items, items_of(runtime, self));
  if (items.empty()) return Value::undefined(Missing::other);
  Value best;
  Value best_key;
  for (const Value& item : items) {
    CAIRN_TRY(Value key, attribute_path(runtime, item, args[1], {}));
    if (!truth_or(args[0], false)) {
      CAIRN_TRY(key, without_case(runtime, key));
    }
    bool is_better = best_key.is(Kind::absent);
    if (!is_better) {
      CAIRN_TRY(is_better, comparison(runtime, better, key, best_key));
    }
    if (!is_better) continue;
    best = item;
    best_key = std::move(key);
  }
  return best;
}

Result<Value> unique(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const std::vector<Value> items, items_of(runtime, self));
  std::vector<Value> seen;
  std::vector<Value> kept;
  for (const Value& item : items) {
    CAIRN_TRY(Value key, attribute_path(runtime, item, args[1], {}));
    if (!truth_or(args[0], false)) {
      CAIRN_TRY(key, without_case(runtime, key));
    }
    if (!is_key(key)) return wrong_type("unique", "values that can be keys", key);
    const size_t comparisons = size_t(std::bit_width(seen.size())) + 1;
    CAIRN_TRY(runtime.work(kStepBytes + comparisons * key_work(key)));
    const auto at =
        std::lower_bound(seen.begin(), seen.end(), key,
                         [](const Value& a, const Value& b) { return compare_keys(a, b) < 0; });
    CAIRN_TRY(runtime.work(size_t(seen.end() - at) * sizeof(Value)));
    if (at != seen.end() && compare_keys(*at, key) == 0) continue;
    seen.insert(at, std::move(key));
    kept.push_back(item);
  }
  return runtime.generator(std::move(kept));
}

Result<Value> first(Runtime& runtime, const Value& self, Args) {
  CAIRN_TRY(Iterator walk, Iterator::over(self));
  Value item;
  CAIRN_TRY(const bool found, walk.next(runtime, item));
  return found ? item : Value::undefined(Missing::other);
}

Result<Value> last(Runtime& runtime, const Value& self, Args) {
  if (self.is(Kind::generator)) return wrong_type("last", "a list", self);
  if (self.is_sequence() || self.is(Kind::string) || self.is(Kind::range)) {
    CAIRN_TRY(Value item, item_of(runtime, self, Value::integer(-1)));
    return item.is(Kind::undefined) ? Value::undefined(Missing::other) : item;
  }
  CAIRN_TRY(const std::vector<Value> items, items_of(runtime, self));
  return items.empty() ? Value::undefined(Missing::other) : items.back();
}

Result<Value> length(Runtime&, const Value& self, Args) {
  CAIRN_TRY(const int64_t size, length_of(self));
  return Value::integer(size);
}

Result<Value> list(Runtime& runtime, const Value& self, Args) {
  if (self.is(Kind::list)) return self;
  CAIRN_TRY(std::vector<Value> items, items_of(runtime, self));
  return runtime.list(std::move(items));
}

Result<Value> items(Runtime& runtime, const Value& self, Args) {
  if (self.is(Kind::undefined)) return runtime.generator({});
  if (!self.is(Kind::dict)) return wrong_type("items", "a dict", self);
  std::vector<Value> pairs;
  CAIRN_TRY(runtime.prepare_items(self.as<DictObject>().entries.size()));
  for (const auto& [key, value] : self.as<DictObject>().entries) {
    CAIRN_TRY(Value pair, runtime.tuple({key, value}));
    pairs.push_back(std::move(pair));
  }
  return runtime.generator(std::move(pairs));
}

Result<Value> join(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const std::vector<Value> items, items_of(runtime, self));
  Value separator;
  if (args[0].is(Kind::absent)) {
    CAIRN_TRY(separator, runtime.string({}, true));
  } else {
    CAIRN_TRY(separator, to_string(runtime, args[0]));
  }
  std::vector<Value> parts;
  parts.reserve(items.size());
  for (const Value& item : items) {
    CAIRN_TRY(Value part, attribute_path(runtime, item, args[1], {}));
    CAIRN_TRY(part, to_string(runtime, part));
    parts.push_back(std::move(part));
  }
  CAIRN_TRY(MarkedText text, joined_by(runtime, separator.marked(), parts));
  return runtime.string(std::move(text));
}

Result<Value> reverse(Runtime& runtime, const Value& self, Args) {
  if (self.is(Kind::string)) {
    return slice_of(runtime, self, Value::none(), Value::none(), Value::integer(-1));
  }
  CAIRN_TRY(std::vector<Value> items, items_of(runtime, self));
  std::reverse(items.begin(), items.end());
  return runtime.generator(std::move(items));
}

Result<Value> sum(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const std::vector<Value> items, items_of(runtime, self));
  Value total = args[1].is(Kind::absent) ? Value::integer(0) : args[1];
  if (total.is(Kind::string)) return wrong_type("sum", "a start that is no string", total);
  for (const Value& item : items) {
    CAIRN_TRY(const Value value, attribute_path(runtime, item, args[0], {}));
    CAIRN_TRY(total, arithmetic(runtime, Operation::add, total, value));
  }
  return total;
}

Result<Value> batch(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const int64_t size, integer_argument("batch", args[0]));
  CAIRN_TRY(const std::vector<Value> items, items_of(runtime, self));
  std::vector<Value> batches;
  std::vector<Value> row;
  const auto flush = [&]() -> Status {
    CAIRN_TRY(Value made, runtime.list(std::exchange(row, {})));
    batches.push_back(std::move(made));
    return Ok{};
  };
  for (const Value& item : items) {
    if (int64_t(row.size()) == size) CAIRN_TRY(flush());
    row.push_back(item);
  }
  if (!row.empty()) {
    const bool fills = !args[1].is(Kind::absent) && !args[1].is(Kind::none);
    if (fills && size > int64_t(row.size())) {
      CAIRN_TRY(runtime.prepare_items(size_t(size)));
      row.resize(size_t(size), args[1]);
    }
    CAIRN_TRY(flush());
  }
  return runtime.generator(std::move(batches));
}

Result<Value> slice(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const int64_t count, integer_argument("slice", args[0]));
  CAIRN_TRY(const std::vector<Value> items, items_of(runtime, self));
  if (count == 0) return fail(kRunFailed, "slice: expected at least one slice, found 0");
  const size_t slice_count = count > 0 ? size_t(count) : 0;
  CAIRN_TRY(runtime.prepare_items(std::min<size_t>(slice_count, kHeapBytesMax)));
  std::vector<Value> slices;
  size_t at = 0;
  for (size_t number = 0; number < slice_count; ++number) {
    CAIRN_TRY(runtime.step());
    const bool is_longer = number < items.size() % slice_count;
    const size_t end = at + items.size() / slice_count + is_longer;
    std::vector<Value> part(items.begin() + int64_t(at), items.begin() + int64_t(end));
    if (!args[1].is(Kind::absent) && !args[1].is(Kind::none) && !is_longer) part.push_back(args[1]);
    CAIRN_TRY(Value made, runtime.list(std::move(part)));
    slices.push_back(std::move(made));
    at = end;
  }
  return runtime.generator(std::move(slices));
}

Result<Value> groupby(Runtime& runtime, const Value& self, Args args) {
  const bool with_cases = truth_or(args[2], false);
  CAIRN_TRY(const std::vector<Value> items, items_of(runtime, self));
  std::vector<Value> keys;
  for (const Value& item : items) {
    CAIRN_TRY(Value key, attribute_path(runtime, item, args[0], args[1]));
    if (!with_cases) {
      CAIRN_TRY(key, without_case(runtime, key));
    }
    keys.push_back(std::move(key));
  }
  CAIRN_TRY(const std::vector<Value> sorted, sorted_by(runtime, items, keys, false));
  CAIRN_TRY(const std::vector<Value> sorted_keys, sorted_by(runtime, keys, keys, false));
  std::vector<Value> groups;
  for (size_t begin = 0; begin < sorted.size();) {
    size_t end = begin + 1;
    for (; end < sorted.size(); ++end) {
      CAIRN_TRY(const bool same, equal(runtime, sorted_keys[begin], sorted_keys[end]));
      if (!same) break;
    }
    CAIRN_TRY(Value key, attribute_path(runtime, sorted[begin], args[0], args[1]));
    CAIRN_TRY(Value members,
              runtime.list({sorted.begin() + int64_t(begin), sorted.begin() + int64_t(end)}));
    CAIRN_TRY(Value group, runtime.tuple({std::move(key), std::move(members)}));
    group.as<ListObject>().is_group = true;
    groups.push_back(std::move(group));
    begin = end;
  }
  return runtime.list(std::move(groups));
}

Result<Value> map(Runtime& runtime, const Value& self, const Arguments& arguments) {
  Arguments rest = arguments;
  if (!truth(self)) return runtime.generator({});
  CAIRN_TRY(const std::vector<Value> items, items_of(runtime, self));
  std::vector<Value> mapped;
  mapped.reserve(items.size());
  if (rest.positional.empty()) {
    CAIRN_TRY(const std::vector<Value> bound, bind("map", "attribute default=", rest));
    for (const Value& item : items) {
      CAIRN_TRY(Value value, attribute_path(runtime, item, bound[0], bound[1]));
      mapped.push_back(std::move(value));
    }
    return runtime.generator(std::move(mapped));
  }
  const Value name = rest.positional[0];
  CAIRN_TRY(const std::string_view word, text_of(name, "map"));
  const auto filter = find_filter(word);
  if (!filter)
    return fail(kRunFailed, "map: expected a known filter, found '{}'", word.substr(0, 60));
  rest.positional.erase(rest.positional.begin());
  for (const Value& item : items) {
    CAIRN_TRY(runtime.step());
    CAIRN_TRY(Value value, call_filter(runtime, *filter, item, rest));
    mapped.push_back(std::move(value));
  }
  return runtime.generator(std::move(mapped));
}

// select, reject and their siblings for attributes.
template <bool wanted, bool by_attribute>
Result<Value> choose(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!truth(self)) return runtime.generator({});
  Arguments rest = arguments;
  Value attribute;
  if (by_attribute) {
    if (rest.positional.empty()) {
      return fail(kRunFailed, "selectattr: expected the name of an attribute, found none");
    }
    attribute = rest.positional[0];
    rest.positional.erase(rest.positional.begin());
  }
  std::optional<uint32_t> test;
  if (!rest.positional.empty()) {
    const Value name = rest.positional[0];
    CAIRN_TRY(const std::string_view word, text_of(name, "select"));
    test = find_test(word);
    if (!test) {
      return fail(kRunFailed, "select: expected a known test, found '{}'", word.substr(0, 60));
    }
    rest.positional.erase(rest.positional.begin());
  }
  CAIRN_TRY(const std::vector<Value> items, items_of(runtime, self));
  std::vector<Value> kept;
  for (const Value& item : items) {
    CAIRN_TRY(runtime.step());
    CAIRN_TRY(const Value value, attribute_path(runtime, item, attribute, {}));
    bool answer = truth(value);
    if (test) {
      CAIRN_TRY(answer, call_test(runtime, *test, value, rest));
    }
    if (answer == wanted) kept.push_back(item);
  }
  return runtime.generator(std::move(kept));
}

constexpr Callable kFilters[] = {
    {"batch", "linecount fill_with=", batch},
    {"count", "", length},
    {"dictsort", "case_sensitive= by= reverse=", dictsort},
    {"first", "", first},
    {"groupby", "attribute default= case_sensitive=", groupby},
    {"items", "", items},
    {"join", "d= attribute=", join},
    {"last", "", last},
    {"length", "", length},
    {"list", "", list},
    {"map", "", nullptr, map},
    {"max", "case_sensitive= attribute=", extreme<Operation::greater>},
    {"min", "case_sensitive= attribute=", extreme<Operation::less>},
    {"reject", "", nullptr, choose<false, false>},
    {"rejectattr", "", nullptr, choose<false, true>},
    {"reverse", "", reverse},
    {"select", "", nullptr, choose<true, false>},
    {"selectattr", "", nullptr, choose<true, true>},
    {"slice", "slices fill_with=", slice},
    {"sort", "reverse= case_sensitive= attribute=", sort},
    {"sum", "attribute= start=", sum},
    {"unique", "case_sensitive= attribute=", unique},
};

}  // namespace

std::span<const Callable> sequence_filters() {
  return kFilters;
}

}  // namespace cairn::jinja
