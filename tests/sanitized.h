// Whether these tests were built with a sanitizer of memory or threads (programs are slower with
// one, take more address space and make system calls that nobody wrote), or for another processor,
// which is emulated.
#pragma once

#include <cstdint>

namespace cairn::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kIsSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kIsSanitized = false;
#endif

#ifdef CAIRN_EMULATED
inline constexpr bool kIsSlow = true;
#else
inline constexpr bool kIsSlow = kIsSanitized;
#endif

// Of so many random cases, those that are tried here.
constexpr uint32_t cases(uint32_t count) {
  return kIsSlow ? (count + 1) / 2 : count;
}

}  // namespace cairn::test
