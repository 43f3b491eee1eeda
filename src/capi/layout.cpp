// Written by the compiler itself: names and offsets cannot part.
#include "capi/layout.h"

#include <cairn.h>

#include <cstddef>
#include <string>

#include "json/value.h"

namespace cairn::capi {

namespace {

json::Value all_structs() {
  json::Value all = json::Value::object();
#define CAIRN_STRUCT(type) all[#type]["size"] = sizeof(type)
#define CAIRN_MEMBER(type, member) all[#type][#member] = offsetof(type, member)
#include "capi/layout_table.h"
#undef CAIRN_STRUCT
#undef CAIRN_MEMBER
  return all;
}

}  // namespace

const char* layout_json() {
  static const std::string text = json::to_text(all_structs());
  return text.c_str();
}

}  // namespace cairn::capi
