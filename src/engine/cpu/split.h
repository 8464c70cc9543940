// A worker's share of a range, in whole units so that tiles stay whole.
#pragma once
#include <algorithm>
#include <cstdint>

namespace gauntlet::engine::cpu {

struct Share {
  std::int64_t begin;
  std::int64_t end;
};

inline Share share_of(std::int64_t count, std::int64_t unit, int worker, int workers) {
  const std::int64_t units = (count + unit - 1) / unit;
  return {std::min(count, units * worker / workers * unit),
          std::min(count, units * (worker + 1) / workers * unit)};
}

}  // namespace gauntlet::engine::cpu
