// Files of a bounded size.
#include "convert/json.h"

#include "base/file.h"

namespace cairn::convert {

Result<Json> parse_json(std::string_view text) {
  return json::read_value("JSON", text, kJsonLimits);
}

Result<Json> read_json_file(const std::string& path) {
  CAIRN_TRY(const std::string text, read_file(path, kJsonLimits.bytes));
  return json::read_value(path, text, kJsonLimits);
}

}  // namespace cairn::convert
