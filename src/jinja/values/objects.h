// The objects that only templates have: views of dicts, generators, ranges, namespaces, loops,
// macros.
// One render, one thread.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "jinja/values/heap.h"

namespace cairn::jinja {

enum class ViewOf : uint8_t { keys, values, items };

// dict.keys(), dict.values(), dict.items().
struct ViewObject final : Object {
  ViewObject(Value of, ViewOf which_part) : dict(std::move(of)), which(which_part) {}
  Value dict;
  ViewOf which;
};

// What a lazy filter gives: can be walked once. Computed at once here, as filters cannot have
// effects that would show the difference.
struct GeneratorObject final : Object {
  explicit GeneratorObject(std::vector<Value> values) : items(std::move(values)) {}
  std::vector<Value> items;
  size_t next = 0;
};

struct RangeObject final : Object {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
  size_t size() const;
  int64_t at(size_t index) const { return start + int64_t(index) * step; }
};

struct NamespaceObject final : MutableObject {
  explicit NamespaceObject(Heap& heap) : MutableObject(heap) {}
  void clear() override { entries.clear(); }
  Value* find(std::string_view name) {
    const auto at = std::find_if(entries.begin(), entries.end(),
                                 [&](const auto& entry) { return entry.first == name; });
    return at == entries.end() ? nullptr : &at->second;
  }
  // How many bytes finding a name touches, at most.
  size_t find_work(std::string_view name) const { return entries.size() * (8 + name.size() / 4); }
  void set(std::string_view name, Value value) {
    if (Value* old = find(name)) {
      *old = std::move(value);
    } else {
      entries.emplace_back(std::string(name), std::move(value));
    }
  }
  std::vector<std::pair<std::string, Value>> entries;
};

// `message.get`, not yet called.
struct MethodObject final : Object {
  MethodObject(Value of, uint32_t table_index) : self(std::move(of)), index(table_index) {}
  Value self;
  uint32_t index;
};

struct CyclerObject final : Object {
  explicit CyclerObject(std::vector<Value> values) : items(std::move(values)) {}
  std::vector<Value> items;
  size_t position = 0;
};

struct JoinerObject final : Object {
  explicit JoinerObject(Value text) : separator(std::move(text)) {}
  Value separator;
  bool is_used = false;
};

// The variable `loop`.
struct LoopObject final : MutableObject {
  explicit LoopObject(Heap& heap) : MutableObject(heap) {}
  void clear() override {
    previous = next = Value();
    changed.clear();
    parent = Value();
  }
  size_t index = 0;  // From 0.
  size_t length = 0;
  int depth = 0;   // From 0.
  Value previous;  // Absent where there is none.
  Value next;
  std::vector<Value> changed;
  bool has_changed_before = false;
  const void* statement = nullptr;  // The `for` that `loop(…)` runs again, where recursive.
  Value parent;                     // The scope in which it runs.
};

struct MacroShape;

// A macro, or the body of a call block.
struct MacroObject final : Object {
  MacroObject(const MacroShape& of, Value name_or_none, const std::vector<Value>& tree_names,
              Value scope_handle)
      : shape(of),
        name(std::move(name_or_none)),
        names(tree_names),
        scope(std::move(scope_handle)) {}
  const MacroShape& shape;
  Value name;                       // None: it has none.
  const std::vector<Value>& names;  // Of the tree that it belongs to.
  Value scope;                      // Where it was defined.
};

}  // namespace cairn::jinja
