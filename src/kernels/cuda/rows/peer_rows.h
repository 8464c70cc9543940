// What ranks left in each other's windows becomes rows that all of them have: sums, and columns
// that were computed apart.
#pragma once
#include <cstdint>

#include "kernels/cuda/launch_how.h"

namespace gauntlet::kernels::cuda::inline rows {

inline constexpr int kMostPeers = 8;

/// out[i] = the sum over ranks of parts[r][i], in the order of ranks: the same bits wherever it
/// runs.
struct AddParts {
  const float* parts[kMostPeers] = {};
  int num_ranks = 0;
  float* out = nullptr;
  std::int64_t count = 0;  // a multiple of 4
};
void add_parts(const AddParts& work, const Launch& how);

/// Some columns of a matrix, [rows, width] at `parts`, and where they begin in it.
struct ColumnPart {
  float* values = nullptr;
  std::int64_t first = 0;
  std::int64_t width = 0;
};

/// Copies columns out of x, one row behind the other.
struct TakeColumns {
  const float* x = nullptr;  // [rows, stride]
  std::int64_t stride = 0;
  std::int64_t num_rows = 0;
  ColumnPart part;
};
void take_columns(const TakeColumns& work, const Launch& how);

/// Puts the columns of several ranks into x.
struct PutColumns {
  float* x = nullptr;  // [rows, stride]
  std::int64_t stride = 0;
  std::int64_t num_rows = 0;
  ColumnPart parts[kMostPeers] = {};
  int num_parts = 0;
};
void put_columns(const PutColumns& work, const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline rows
