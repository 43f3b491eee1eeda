// Receipts as JSON text (docs/receipts.md has the format). What is read is a stranger's: its size,
// its kinds and its ranges are checked before anything is made of it. Thread-safe: pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/value.h"
#include "session/receipt.h"

namespace cairn::session {

// Errors: invalid_argument, where a text of the request is no UTF-8.
Result<json::Value> receipt_json(const Receipt& receipt);
Result<std::string> receipt_text(const Receipt& receipt);  // The same, and a line feed.

// What computing it again has shown: {"equal", "tokens", "fingerprint"}, and where it is not equal
// "field", "token", "expected", "found".
json::Value comparison_json(const Receipt& receipt,
                            const std::optional<ReceiptDifference>& difference);

// `name`: what errors begin with. Errors: those of json::read_value(); invalid_data that names the
// member, what was expected and what was found.
Result<Receipt> read_receipt(std::string_view name, std::string_view text);

// Errors: those of receipt_text() and of OutputFile. The file is for its owner alone.
Status write_receipt(const std::string& path, const Receipt& receipt);
// Errors: those of read_file() and of read_receipt().
Result<Receipt> load_receipt(const std::string& path);

}  // namespace cairn::session
