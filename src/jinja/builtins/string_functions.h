// What filters and string methods share: Python's string operations, with marks kept. Each checks
// the size of its result before it builds it. One render, one thread.
#pragma once

#include <string_view>
#include <vector>

#include "jinja/runtime.h"

namespace cairn::jinja {

enum class Side : uint8_t { both, left, right };
enum class Case : uint8_t { upper, lower, capitalize, title, swap };

// Takes off white space, or the characters given (not absent, not none).
Result<MarkedText> stripped(Runtime& runtime, const MarkedText& text, const Value& characters,
                            Side side);
Result<MarkedText> with_case(Runtime& runtime, const MarkedText& text, Case wanted);
// Negative: all of them.
Result<MarkedText> replaced(Runtime& runtime, const MarkedText& text, const MarkedText& from,
                            const MarkedText& to, int64_t count_max);
// The separator absent or none: runs of white space. Negative: no maximum.
Result<std::vector<MarkedText>> split(Runtime& runtime, const MarkedText& text,
                                      const Value& separator, int64_t count_max, bool from_right);
Result<std::vector<MarkedText>> split_lines(Runtime& runtime, const MarkedText& text,
                                            bool keep_ends);
Result<MarkedText> joined_by(Runtime& runtime, const MarkedText& separator,
                             const std::vector<Value>& parts);  // REQUIRES: strings.
// Where a substring starts, or npos; linear whatever the texts. From the right it is not, so long
// patterns pay for it.
size_t find_bytes(std::string_view text, std::string_view wanted, size_t from = 0);
Result<size_t> find_bytes_from_right(Runtime& runtime, std::string_view text,
                                     std::string_view wanted);
// Title case as the filter sees words: after white space, hyphens and opening brackets.
Result<MarkedText> with_title_filter(Runtime& runtime, const MarkedText& text);

}  // namespace cairn::jinja
