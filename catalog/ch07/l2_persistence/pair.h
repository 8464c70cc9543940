// Does it pay to reserve part of L2 for a hot table while other data streams past it?
#pragma once
#include <cstdint>

namespace gauntlet::ch07::l2_persistence {

constexpr int kWidth = 64;  // words per row

struct Params {
  const float* table;         // [table_rows, kWidth]
  const float* x;             // [rows, kWidth]
  const std::int32_t* index;  // [rows], into table
  float* out;                 // [rows, kWidth]
  std::int64_t table_rows;
  std::int64_t rows;
};

}  // namespace gauntlet::ch07::l2_persistence
