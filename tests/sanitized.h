// Whether these tests were built with a sanitizer of memory or threads. Programs are slower with
// one, take more address space and make system calls that nobody wrote.
#pragma once

namespace cairn::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kIsSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace cairn::test
