// The limits of the reader (rules L1 to L3; docs/formats.md says why each is what it is). The
// writer obeys the same ones.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::gguf {

// The smallest entries that a file can hold: what a declared count is compared with.
constexpr uint64_t kFieldBytesMin = 8 + 1 + 4 + 1;           // Key length, key, type, value.
constexpr uint64_t kTensorBytesMin = 8 + 1 + 4 + 8 + 4 + 8;  // Name, dim count, dim, type, offset.
constexpr uint64_t kStringBytesMin = 8;                      // The length of an empty string.

constexpr uint64_t kKeyBytesMax = 65535;
constexpr uint64_t kTensorNameBytesMax = 64;
constexpr uint64_t kStringBytesMax = uint64_t(16) << 20;
constexpr uint64_t kTemplateBytesMax = uint64_t(1) << 20;
constexpr uint64_t kArrayElementsMax = uint64_t(1) << 26;

constexpr uint32_t kDimCountMax = 4;
constexpr uint64_t kDimMax = uint64_t(1) << 40;
constexpr uint64_t kWeightsMax = uint64_t(1) << 48;

constexpr uint64_t kAlignmentMin = 8;
constexpr uint64_t kAlignmentMax = 65536;
constexpr uint64_t kAlignmentDefault = 32;

// How much of a name or key from a file stands in a message.
constexpr uint64_t kShownBytesMax = 128;

constexpr uint64_t kPartsMax = 1000;

constexpr uint32_t kMagic = 0x46554747;  // "GGUF".
constexpr uint32_t kVersionMin = 2;
constexpr uint32_t kVersionMax = 3;

constexpr const char* kAlignmentKey = "general.alignment";
constexpr const char* kTemplateKey = "tokenizer.chat_template";

}  // namespace cairn::gguf
