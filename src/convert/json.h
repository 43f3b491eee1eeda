// The JSON files of model directories: a tree of values (json/value.h) within limits that fit them.
// Numbers too large for 64 bits become reals: the files have them where they mean "no limit".
// Thread-safe: pure.
#pragma once

#include <string>
#include <string_view>

#include "json/value.h"

namespace cairn::convert {

using Json = json::Value;

// A value takes 128 bytes, and two bytes of a file are enough for one. The largest tokenizers have
// a quarter of these values.
constexpr json::Limits kJsonLimits{
    .bytes = size_t(256) << 20, .values = size_t(1) << 23, .members = size_t(1) << 23};

// Errors: those of json::read_value.
Result<Json> parse_json(std::string_view text);
// Errors name the file; not_found, io besides.
Result<Json> read_json_file(const std::string& path);

}  // namespace cairn::convert
