// Parts of a buffer that lie one behind the other, and terms that are added to a sum.
#pragma once
#include <cstddef>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

namespace gauntlet::ranks {

/// Up to so many bytes every rank gets all terms of a sum, which is one exchange; beyond, each adds
/// a part, and the parts are gathered.
inline constexpr std::size_t kSumAtOnceBytes = 64 << 10;

/// Where each part begins, and where the last one ends.
inline std::vector<std::size_t> offsets_of(std::span<const std::size_t> sizes) {
  std::vector<std::size_t> offsets(sizes.size() + 1);
  std::inclusive_scan(sizes.begin(), sizes.end(), offsets.begin() + 1);
  return offsets;
}

template <class T>
void add(std::span<T> sum, const std::byte* terms) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    T term;
    std::memcpy(&term, terms + i * sizeof(T), sizeof(T));
    sum[i] += term;
  }
}

}  // namespace gauntlet::ranks
