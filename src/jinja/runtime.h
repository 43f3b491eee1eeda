// The limits of one render (steps, memory) and its clock, the only outside input. One render, one
// Runtime, one thread.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "jinja/builtins/strftime.h"
#include "jinja/values/heap.h"
#include "jinja/values/keys.h"
#include "jinja/work_budget.h"

namespace cairn::jinja {

constexpr size_t kOutputBytesMax = 8u << 20;
constexpr int kCallDepthMax = 64;
constexpr int64_t kRangeMax = 100'000;
// What things cost, as much as touching so many bytes (256 are a step): handling one element of a
// container, …
constexpr size_t kElementWork = 64;
// … searching, for each byte of the text, …
constexpr size_t kSearchWork = 6;
// … making an object, beside what it holds, …
constexpr size_t kObjectWork = 128;
// … looking at each character, and finding out what Unicode says of it.
constexpr size_t kCharacterWork = 8;
constexpr size_t kPropertyWork = 40;
// Nested evaluations, whatever they are: each costs up to about 2 KiB of stack.
constexpr int kNativeDepthMax = 900;

// What the errors of a render mean. Syntax errors are invalid_data, from parse().
constexpr ErrorCode kRefusedByTemplate = ErrorCode::invalid_argument;  // raise_exception
constexpr ErrorCode kRunFailed = ErrorCode::unsupported;  // The template cannot do this.
constexpr ErrorCode kOverBudget = ErrorCode::no_room;

class Runtime {
 public:
  // The budget must outlive it.
  Runtime(std::optional<CivilTime> clock, WorkBudget& budget) : budget_(budget), clock_(clock) {}

  Heap& heap() { return heap_; }
  const std::optional<CivilTime>& clock() const { return clock_; }

  Status step() { return budget_.step(); }
  // Touching this many bytes.
  Status work(size_t bytes) { return budget_.work(bytes); }
  // Whether a string may grow to this size.
  Status check_string(size_t bytes) const;
  // Before a string or a list of this size is built: checked and paid for.
  Status prepare_string(size_t bytes);
  Status prepare_items(size_t count);

  // Objects. What their contents cost is the caller's to pay, but for the keys of a dict.
  Result<Value> string(MarkedText text);
  Result<Value> string(std::string text, bool trusted) {
    return string(MarkedText(std::move(text), trusted));
  }
  Result<Value> list(std::vector<Value> items, Kind kind = Kind::list);
  Result<Value> tuple(std::vector<Value> items) { return list(std::move(items), Kind::tuple); }
  Result<Value> generator(std::vector<Value> items);
  // REQUIRES: every key is_key().
  Result<Value> dict(std::vector<Entry> entries);

  // Null where the dict does not have it. REQUIRES: is_key(key).
  Result<const Value*> find(const DictObject& dict, const Value& key);
  Result<const Value*> find(const DictObject& dict, std::string_view key);

  // Filters that call filters nest only so deep.
  Status enter_filter();
  void leave_filter() { --filter_depth_; }

 private:
  WorkBudget& budget_;
  int filter_depth_ = 0;
  Heap heap_;
  std::optional<CivilTime> clock_;
};

}  // namespace cairn::jinja
