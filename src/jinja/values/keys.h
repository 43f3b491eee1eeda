// Keys of dicts: what may be one, how they are ordered, and what comparing them costs, so that a
// template pays for it before it is done. Pure; any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "jinja/values/value.h"

namespace cairn::jinja {

constexpr size_t kNoKey = SIZE_MAX;
constexpr size_t kKeyWorkMin = 16;
// About how many bytes comparing this key with another one touches, at most; kNoKey for what is no
// key. A tuple may hold the same tuple twice, and so on down: its work is known without a walk.
size_t key_work(const Value& value);
size_t key_work_of_tuple(const std::vector<Value>& items);
// The same for bringing the entries of a dict into the order of their keys.
size_t sorting_work(const std::vector<Entry>& entries);
// What may be a key: none, booleans, numbers, strings and tuples of them. Orders keys of all kinds.
bool is_key(const Value& value);
// Whether Python too refuses to look for it in a dict; others, such as what is undefined, it finds
// in none. REQUIRES: !is_key(value).
bool is_unhashable(const Value& value);
int compare_keys(const Value& a, const Value& b);  // REQUIRES: both are keys.

}  // namespace cairn::jinja
