#pragma once
// Whether this is a build with a sanitizer.

namespace rowmill::test {

/// Such a build is slow, and its own memory counts as the program's.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__clang__)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif
#else
constexpr bool sanitized = false;
#endif

/// Random cases of a test: under a sanitizer, which looks for wrong accesses more than for wrong numbers, a fifth.
constexpr int rounds(int wanted) {
  return sanitized && wanted > 5 ? wanted / 5 : wanted;
}

}  // namespace rowmill::test
