// Finds the end of a JSON value in a text that arrives in pieces, and undoes its escapes where the
// value is a string that holds JSON. Accepts more than JSON and judges nothing: json/reader.h reads
// whole texts, while here each piece is handed on before the rest is known.
// Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn::chat {

class JsonScanner {
 public:
  enum class State : uint8_t { more, done, broken };

  // Starts again. `unwraps`: of a string, its text is wanted, not its quotes and escapes.
  void reset(bool unwraps);
  // Reads on from the front of `text`; what belongs to the value is appended to `out`, and the
  // bytes that were read are taken from `text`.
  State feed(std::string_view& text, bool is_all, std::string& out);

 private:
  State feed_wrapped(std::string_view& text, bool is_all, std::string& out);
  bool unescape(std::string_view& text, bool is_all, std::string& out, bool& is_broken);

  enum class Kind : uint8_t { unknown, nested, string, wrapped, scalar };
  Kind kind_ = Kind::unknown;
  bool unwraps_ = false;
  bool in_string_ = false;
  bool is_escaped_ = false;
  int32_t depth_ = 0;
  uint32_t high_surrogate_ = 0;
};

}  // namespace cairn::chat
