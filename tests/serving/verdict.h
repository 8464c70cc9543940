// What a run of a serving test has to show: each claim is printed with its figures, and one that
// does not hold fails the run.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace gauntlet::tests {

class Verdict {
 public:
  void claim(bool holds, const std::string& what) {
    fmt::print("{} {}\n", holds ? "ok    " : "FAILED", what);
    std::fflush(stdout);
    failed_ |= !holds;
  }
  void note(const std::string& what) const {
    fmt::print("       {}\n", what);
    std::fflush(stdout);
  }
  int exit_code() const { return failed_ ? 1 : 0; }

 private:
  bool failed_ = false;
};

/// A sanitizer keeps freed memory and shadows the rest: resident memory says nothing there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kMemoryIsMeasured = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kMemoryIsMeasured = false;
#else
inline constexpr bool kMemoryIsMeasured = true;
#endif
#else
inline constexpr bool kMemoryIsMeasured = true;
#endif

}  // namespace gauntlet::tests
