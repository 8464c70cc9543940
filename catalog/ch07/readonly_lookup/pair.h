// What does it buy to load through the read-only path instead of as memory that may change?
#pragma once
#include <cstdint>

namespace gauntlet::ch07::readonly_lookup {

struct Params {
  const float* table;         // [entries]
  const std::int32_t* index;  // [lookups], into table
  float* out;                 // [lookups]
  std::int64_t entries;
  std::int64_t lookups;
};

}  // namespace gauntlet::ch07::readonly_lookup
