// cairn.h as C programs read it; compiled with all warnings, as errors.
#include <cairn.h>

size_t capi_header_bytes(void);

size_t capi_header_bytes(void) {
  cairn_error error = {.struct_size = sizeof error};
  cairn_plan plan = {.struct_size = sizeof plan};
  return error.struct_size + plan.struct_size + sizeof(cairn_event);
}
