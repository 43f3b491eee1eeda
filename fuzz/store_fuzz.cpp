// Records and manifests from strangers: the first byte chooses which. Checksums are made right, so
// that fields are reached behind them. What is read says what it said, and an outline that passes
// its check can be resumed, cut and divided.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/outline.h"
#include "store/crc32c.h"
#include "store/manifest.h"
#include "store/pieces.h"
#include "store/record.h"

namespace {

namespace memory = cairn::memory;
namespace store = cairn::store;
using cairn::State;
using cairn::Token;

size_t head_bytes(cairn::KvType, int32_t dim) {
  return size_t(dim) * 4 * cairn::kPageTokens;
}

memory::Layout some_layout() {
  const cairn::PageFormat format{.head_bytes = &head_bytes, .alignment = 64, .unit_bytes = 4096};
  const std::vector<std::vector<State>> layers = {
      {State::full(1, 1, 1)},
      {State::windowed(33, 1, 1, 1), State::recurrent({2, 2})},
      {State::chunked(40, 1, 1, 1)}};
  memory::Layout layout =
      memory::Layout::make(layers, format, cairn::KvType::f32, cairn::KvType::f32, 2);
  const int32_t width = 2;
  layout.add_log({&width, 1});
  return layout;
}

void put(std::vector<std::byte>& bytes, size_t place, uint32_t number) {
  for (size_t i = 0; i < 4; ++i) bytes[place + i] = std::byte(number >> (8 * i));
}

void try_record(std::vector<std::byte> bytes) {
  if (bytes.size() < store::kHeaderBytes) return void(store::decode_front(bytes));
  put(bytes, 220, store::crc32c(std::span(bytes).first(220)));
  auto header = store::decode_header(bytes);
  if (!header) return;
  const std::vector<std::byte> again = store::encode(*header);
  CHECK(std::equal(again.begin(), again.end(), bytes.begin()));
  const size_t lists = 4 * (size_t(header->token_count) + header->checksum_count());
  if (bytes.size() < store::kHeaderBytes + lists + 4) return;
  put(bytes, store::kHeaderBytes + lists,
      store::crc32c(std::span(bytes).subspan(store::kHeaderBytes, lists)));
  auto front = store::decode_front(bytes);
  if (front) CHECK(front->tokens.size() == header->token_count);
}

void try_manifest(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const std::vector<Token> tokens(size_t(bytes[0]), Token(3));
  bytes = bytes.subspan(1);
  auto manifest = store::decode_manifest(bytes, tokens);
  if (!manifest) return;
  const std::vector<std::byte> again = store::encode(*manifest);
  CHECK(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
  static const memory::Layout kLayout = some_layout();
  memory::Outline outline = manifest->outline;
  if (!memory::check(outline, kLayout)) return;
  (void)store::pieces_of(outline, kLayout);
  const int32_t resume = memory::resume_position(outline, kLayout, outline.length(), true);
  CHECK(resume >= 0 && resume <= outline.length());
  outline.cut(kLayout, resume);
  CHECK(resume == 0 || memory::check(outline, kLayout));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  if (data[0] % 2 == 0) {
    try_record({bytes.begin() + 1, bytes.end()});
  } else {
    try_manifest(bytes.subspan(1));
  }
  return 0;
}
