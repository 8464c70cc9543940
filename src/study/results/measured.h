// What was measured, or why it was not.
#pragma once
#include <optional>
#include <string>
#include <utility>

namespace gauntlet::study::inline results {

/// Why a point has no figure while its study is still under way.
inline constexpr const char* kNotYet = "not measured yet";

/// A value; or why there is none; or neither, where a study was not that far yet.
template <class T>
struct Measured {
  std::optional<T> value;
  std::string gap;

  explicit operator bool() const { return value.has_value(); }
  const T& operator*() const { return *value; }
  const T* operator->() const { return &*value; }

  /// What `make` makes of the value, or the same gap.
  template <class Make>
  auto then(Make&& make) const -> Measured<decltype(make(std::declval<const T&>()))> {
    if (!value) return {.value = {}, .gap = gap};
    return {.value = make(*value), .gap = {}};
  }
  /// With a reason in any case.
  Measured or_not_yet() && {
    if (!value && gap.empty()) gap = kNotYet;
    return std::move(*this);
  }
};

}  // namespace gauntlet::study::inline results
