// Integers in little endian in a run of bytes: writing them, and reading them from what a stranger
// may have written. Thread-safe: one object, one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/sha256.h"

namespace cairn::store {

class ByteWriter {
 public:
  void number(uint64_t value, size_t byte_count) {
    for (size_t byte = 0; byte < byte_count; ++byte) {
      bytes_.push_back(std::byte(value >> (8 * byte)));
    }
  }
  void u8(uint64_t value) { number(value, 1); }
  void u16(uint64_t value) { number(value, 2); }
  void u32(uint64_t value) { number(value, 4); }
  void u64(uint64_t value) { number(value, 8); }
  void raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void digest(const Sha256Digest& digest) { raw(std::as_bytes(std::span(digest))); }
  void zeros_to(size_t size) { bytes_.resize(size); }

  size_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Past the end everything is zero, and is_whole() false from then on: callers look once.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : left_(bytes) {}

  uint64_t number(size_t byte_count) {
    const std::span<const std::byte> bytes = raw(byte_count);
    uint64_t value = 0;
    for (size_t byte = 0; byte < bytes.size(); ++byte) value |= uint64_t(bytes[byte]) << (8 * byte);
    return value;
  }
  uint8_t u8() { return uint8_t(number(1)); }
  uint16_t u16() { return uint16_t(number(2)); }
  uint32_t u32() { return uint32_t(number(4)); }
  uint64_t u64() { return number(8); }
  std::span<const std::byte> raw(size_t count) {
    if (count > left_.size()) {
      is_whole_ = false;
      left_ = {};
      return {};
    }
    const auto bytes = left_.first(count);
    left_ = left_.subspan(count);
    return bytes;
  }
  Sha256Digest digest() {
    Sha256Digest digest{};
    const auto bytes = raw(digest.size());
    if (!bytes.empty()) std::memcpy(digest.data(), bytes.data(), bytes.size());
    return digest;
  }

  bool is_whole() const { return is_whole_; }
  size_t left() const { return left_.size(); }
  // Whether `count` items of so many bytes could follow: asked before room is made for them.
  bool could_have(uint64_t count, size_t item_bytes) const {
    return count <= left_.size() / item_bytes;
  }

 private:
  std::span<const std::byte> left_;
  bool is_whole_ = true;
};

}  // namespace cairn::store
