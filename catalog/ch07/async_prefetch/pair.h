// What does it buy to ask for irregular data some steps before it is used?
#pragma once
#include <cstdint>

namespace gauntlet::ch07::async_prefetch {

constexpr int kWidth = 16;  // words per row: one cache line

struct Params {
  const float* table;         // [table_rows, kWidth]
  const float* weight;        // [kWidth]
  const std::int32_t* index;  // [lookups], into table
  float* out;                 // [lookups]: the looked-up row times weight
  std::int64_t table_rows;
  std::int64_t lookups;
};

}  // namespace gauntlet::ch07::async_prefetch
