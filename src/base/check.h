// Assertions about the program itself, never about input: CHECK is always on, DCHECK only in debug
// and sanitizer builds (CAIRN_DEBUG_CHECKS). Both abort with the place and the condition.
#pragma once

namespace cairn {

[[noreturn]] void check_failed(const char* file, int line, const char* condition);

}  // namespace cairn

#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) ::cairn::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)

#ifdef CAIRN_DEBUG_CHECKS
#define DCHECK(condition) CHECK(condition)
#else
#define DCHECK(condition)         \
  do {                            \
    if (false) (void)(condition); \
  } while (false)
#endif
