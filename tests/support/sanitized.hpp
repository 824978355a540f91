#pragma once
// Whether this is a build with a sanitizer.

namespace rowmill::test {

/// Such a build is slow, and its own memory counts as the program's.
#ifdef ROWMILL_SANITIZED
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

/// Random cases of a test: under a sanitizer, which looks for wrong accesses more than for wrong numbers, a fifth.
constexpr int rounds(int wanted) {
  return sanitized && wanted > 5 ? wanted / 5 : wanted;
}

}  // namespace rowmill::test
