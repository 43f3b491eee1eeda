// The edit distance (Levenshtein), row by row.
#include "base/text/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace cairn {

namespace {

constexpr size_t kMistakesMax = 2;  // A word with more of them is another one.
constexpr size_t kLettersEach = 3;  // So many letters make up for a mistake.

size_t distance_of(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({changed, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(std::string_view typed, std::span<const std::string> known) {
  std::string nearest;
  size_t nearest_distance = kMistakesMax + 1;
  for (const std::string& name : known) {
    const size_t longer = std::max(typed.size(), name.size());
    const size_t mistakes_max = std::min(kMistakesMax, longer / kLettersEach);
    if (longer - std::min(typed.size(), name.size()) > mistakes_max) continue;
    const size_t distance = distance_of(typed, name);
    if (distance > mistakes_max || distance >= nearest_distance) continue;
    nearest = name;
    nearest_distance = distance;
  }
  return nearest;
}

}  // namespace cairn
