// Any bytes as a receipt. What is read is written as a receipt that reads back to the same text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "session/receipt_text.h"

namespace session = cairn::session;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto receipt = session::read_receipt("receipt", {reinterpret_cast<const char*>(data), size});
  if (!receipt) {
    CHECK(receipt.error().message.size() < 600);
    return 0;
  }
  auto written = session::receipt_text(*receipt);
  CHECK(written);
  auto again = session::read_receipt("receipt", *written);
  CHECK(again);
  CHECK(!session::difference_of(*receipt, *again));
  auto rewritten = session::receipt_text(*again);
  CHECK(rewritten && *rewritten == *written);
  return 0;
}
