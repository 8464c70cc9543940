// Does it pay to tell the cache that what is written will not be read again soon?
#pragma once
#include <cstdint>

namespace gauntlet::ch07::streaming_stores {

constexpr int kWidth = 64;  // words per row

struct Params {
  const float* table;         // [table_rows, kWidth]
  const std::int32_t* index;  // [rows], into table
  float* out;                 // [rows, kWidth]
  std::int64_t table_rows;
  std::int64_t rows;
};

}  // namespace gauntlet::ch07::streaming_stores
