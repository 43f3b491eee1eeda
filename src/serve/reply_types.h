// What replies look like: named types, to which the table of routes (serve/app.h) refers; both
// become the schemas of the OpenAPI document. Thread-safe: constant data. Types are written so:
//   string integer number boolean null object any "text" true    what JSON has; a text; a value
//   [T]   A | B   Name                                           lists; either; of the table
//   {name: T, other?: T, ...Name}    members, those that may be missing, and those of another type
//   {*: T}   {name: T, ...}          members of any name; further members
#pragma once

#include <span>
#include <string_view>

#include "json/value.h"

namespace cairn::serve {

struct ReplyType {
  std::string_view name;
  std::string_view type;
};

std::span<const ReplyType> reply_types();

// The JSON Schema of a type; names refer to "#/components/schemas/NAME".
// REQUIRES: it is written as above.
json::Value schema_of(std::string_view type);

}  // namespace cairn::serve
