// A name is cut at its dashes; each part is put into a class by its form.
#include "convert/model_name.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace cairn::convert {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
}
char upper(char c) {
  return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
}
std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower(c);
  return out;
}

// Takes pieces off the front of a part in lower case.
class Scan {
 public:
  explicit Scan(std::string_view text) : left_(text) {}

  bool is_done() const { return left_.empty(); }
  bool take(std::string_view text) {
    if (!left_.starts_with(text)) return false;
    left_.remove_prefix(text.size());
    return true;
  }
  bool take_any(std::string_view letters) {
    if (left_.empty() || letters.find(left_.front()) == letters.npos) return false;
    left_.remove_prefix(1);
    return true;
  }
  bool take_digits() {
    size_t count = 0;
    while (count < left_.size() && is_digit(left_[count])) ++count;
    left_.remove_prefix(count);
    return count > 0;
  }
  // A separator and digits, or nothing.
  bool take_fraction(std::string_view separators) {
    const std::string_view before = left_;
    if (take_any(separators) && take_digits()) return true;
    left_ = before;
    return false;
  }

 private:
  std::string_view left_;
};

// 3, v1.5, iter2.
bool is_version(std::string_view text) {
  Scan scan(text);
  if (!scan.take("v")) scan.take("iter");
  if (!scan.take_digits()) return false;
  while (scan.take_fraction(".")) {
  }
  return scan.is_done();
}

// q4_k_m, iq2, fp16, bf16, f32.
bool is_type(std::string_view text) {
  Scan scan(text);
  scan.take("i");
  if (scan.take("q")) {
    if (!scan.take_any("0123456789")) return false;
    while (scan.take("_")) {
      if (!scan.take_any("abcdefghijklmnopqrstuvwxyz0123456789_")) return false;
    }
    return scan.is_done();
  }
  Scan wide(text);
  wide.take("b");
  if (!wide.take("f")) return false;
  wide.take("p");
  return (wide.take("16") || wide.take("32")) && wide.is_done();
}

// 7b, 8x7b, a3b, 1.5b, 7b1, 270m, or a word.
bool is_size(std::string_view text) {
  for (const std::string_view word : {"small", "mini", "medium", "large", "xl", "xxl"}) {
    if (text == word) return true;
  }
  const auto fits = [&](bool is_active, bool is_mixture) {
    Scan scan(text);
    if (is_active && !scan.take("a")) return false;
    if (is_mixture && !(scan.take_digits() && scan.take("x"))) return false;
    if (!scan.take_digits()) return false;
    scan.take_fraction("._");
    if (!scan.take_any("kmbt")) return false;
    scan.take_any("0123456789");
    return scan.is_done();
  };
  return fits(false, false) || fits(true, false) || fits(false, true);
}

struct Part {
  std::string text;
  bool basename = false, size = false, finetune = false, version = false, type = false;

  bool is_plain() const { return !(basename || size || finetune || version || type); }
  int class_count() const { return basename + size + finetune + version + type; }
};

// What a size says in weights: nothing for 8x7B, A3B and words.
std::optional<double> weights_of(std::string_view size) {
  const size_t power = std::string_view(" KMBT").find(size.back());
  double number = 0, place = 0;
  for (const char c : size.substr(0, size.size() - 1)) {
    if (c == '.' && place == 0) {
      place = 1;
    } else if (is_digit(c)) {
      number = 10 * number + (c - '0');
      place *= 10;
    } else {
      return std::nullopt;
    }
  }
  if (size.size() < 2 || power == std::string_view::npos) return std::nullopt;
  return number / (place == 0 ? 1 : place) * std::pow(1000.0, double(power));
}

void read_size(Part& part, int64_t weight_count) {
  std::string& text = part.text;
  std::replace(text.begin(), text.end(), '_', '.');
  const size_t size = text.size();
  // 7b1 stands for 7.1b.
  if (is_digit(text.back()))
    text = text.substr(0, size - 2) + "." + text[size - 1] + text[size - 2];
  if (text.size() > 1 && is_digit(text[text.size() - 2])) text.back() = upper(text.back());
  const std::optional<double> said = weights_of(text);
  const auto total = double(weight_count);
  if (weight_count > 0 && said && std::fabs(*said - total) > double(7 * weight_count / 8)) {
    part.finetune = true;  // More likely the length of a context.
    text.back() = lower(text.back());
    return;
  }
  part.size = true;
}

std::vector<Part> cut(std::string_view name, int64_t weight_count) {
  std::vector<Part> parts;
  while (true) {
    const size_t dash = name.find('-');
    if (!name.substr(0, dash).empty()) parts.push_back({std::string(name.substr(0, dash))});
    if (dash == name.npos) break;
    name.remove_prefix(dash + 1);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    const std::string text = lower(part.text);
    if (is_version(text)) {
      part.version = true;
    } else if (is_type(text)) {
      part.type = true;
      for (char& c : part.text) c = upper(c);
    } else if (i > 0 && is_size(text)) {
      read_size(part, weight_count);
    } else if (i > 0 &&
               (text == "chat" || text == "instruct" || text == "vision" || text == "lora")) {
      part.finetune = true;
    }
  }
  return parts;
}

// Words say nothing of a size where a number does.
void drop_word_sizes(std::vector<Part>& parts) {
  const auto has_digit = [](const Part& part) {
    return part.size && std::any_of(part.text.begin(), part.text.end(), is_digit);
  };
  if (std::none_of(parts.begin(), parts.end(), has_digit)) return;
  for (Part& part : parts) {
    if (std::all_of(part.text.begin(), part.text.end(), is_letter)) part.size = false;
  }
}

void find_basename(std::vector<Part>& parts) {
  bool at_start = true;
  for (Part& part : parts) {
    if (at_start && ((part.is_plain() && is_letter(part.text[0])) || part.version)) {
      part.basename = true;
      continue;
    }
    at_start = false;
    if (part.is_plain()) part.finetune = true;
  }
  // A version at its end is no part of the name.
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!part->basename || part->class_count() < 2) break;
    part->basename = false;
  }
}

template <class Wanted>
std::string join(const std::vector<Part>& parts, Wanted wanted, bool once = false) {
  std::vector<std::string> used;
  std::string text;
  for (const Part& part : parts) {
    if (!wanted(part)) continue;
    if (once && std::find(used.begin(), used.end(), part.text) != used.end()) continue;
    used.push_back(part.text);
    text += (text.empty() ? "" : "-") + part.text;
  }
  return text;
}

std::string rounded(int64_t count) {
  const auto number = double(count);
  const auto [scale, suffix] = number > 1e12  ? std::pair(1e-12, 'T')
                               : number > 1e9 ? std::pair(1e-9, 'B')
                               : number > 1e6 ? std::pair(1e-6, 'M')
                                              : std::pair(1e-3, 'K');
  const double scaled = number * scale;
  const double whole = std::nearbyint(scaled);
  // Two digits that say something: 0.60, 1.5, 30.
  const int digits = whole < 1 ? 0 : whole < 10 ? 1 : 2;
  return fmt::format("{:.{}f}{}", scaled, 2 - digits, suffix);
}

}  // namespace

ModelName parse_model_name(std::string_view id, int64_t weight_count) {
  ModelName name;
  name.full = id;
  if (id.find(' ') != id.npos) return name;
  if (const size_t slash = id.find('/'); slash != id.npos) {
    name.organization = id.substr(0, slash);
    name.full = id.substr(slash + 1);
    if (!name.organization.empty() && name.organization[0] == '.') name.organization.clear();
  }
  std::vector<Part> parts = cut(name.full, weight_count);
  drop_word_sizes(parts);
  find_basename(parts);
  name.size_label = join(
      parts, [](const Part& part) { return part.size; }, true);
  name.finetune = join(parts, [](const Part& part) { return part.finetune; });
  name.version = join(parts, [](const Part& part) { return part.version && !part.basename; });
  // A single word may be anything.
  if (!name.size_label.empty() || !name.finetune.empty() || !name.version.empty()) {
    name.basename = join(parts, [](const Part& part) { return part.basename; });
  }
  return name;
}

std::string title_of(std::string_view name) {
  std::string title, word;
  const auto end_word = [&] {
    if (word.empty()) return;
    const bool has_upper = lower(word) != word;
    const bool has_letter = std::any_of(word.begin(), word.end(), is_letter);
    if (has_letter && !has_upper && !is_digit(word[0]) && !(word[0] == 'v' && is_version(word))) {
      bool is_first = true;
      for (char& c : word) {
        if (is_first) c = upper(c);
        is_first = !is_letter(c);
      }
    }
    title += (title.empty() ? "" : " ") + word;
    word.clear();
  };
  for (const char c : name) {
    if (c == '-' || c == ' ' || c == '\t' || c == '\n') {
      end_word();
    } else {
      word += c;
    }
  }
  end_word();
  return title;
}

std::string size_label(const WeightCounts& counts) {
  if (counts.expert_count == 0) return rounded(counts.total);
  return fmt::format("{}x{}", counts.expert_count, rounded(counts.shared + counts.of_expert));
}

}  // namespace cairn::convert
