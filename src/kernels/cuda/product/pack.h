// Puts weights into the fragment order on the device, or row after row, from rows that were
// uploaded or that are made up there: random weights never exist on the host.
#pragma once
#include <cstdint>

#include "kernels/cuda/launch_how.h"
#include "kernels/cuda/product/fragments.h"

namespace gauntlet::kernels::cuda::inline product {

/// Rows of one matrix: uploaded ones, or the random ones of a key (see model/random_rows).
struct RowSource {
  std::int64_t rows = 0;
  const void* data = nullptr;  // bf16 elements, or pairs of nibbles (low is even); null: random
  const std::uint8_t* scales = nullptr;  // of MXFP4: one per 32 elements
  std::uint64_t random_key = 0;
  std::int64_t first_random_row = 0;  // of this piece of the matrix
  std::int64_t first_random_col = 0;  // of a view, a multiple of 32
  std::int64_t random_cols = 0;       // of the whole that it is a view of; 0: as many as here
};
inline constexpr int kMostSources = 3;

/// Random MXFP4: what model/random_rows derives from the width.
struct RandomScales {
  std::uint8_t lower = 0;
  std::uint32_t upper_of_256 = 0;
};

struct Pack {
  WeightFormat source_format =
      WeightFormat::bf16;           // MXFP4 may be expanded to bf16, not the reverse
  RowSource sources[kMostSources];  // one after the other, or taken in pairs
  RowOrder order = RowOrder::plain;
  std::int64_t cols = 0;
  float random_step = 0;  // of random bf16
  RandomScales random_scales;
  FragmentMatrix target;        // rows and cols as above
  std::uint8_t* out = nullptr;  // target.data, writable
};
void pack(const Pack& work, const Launch& how);

/// Rows as files hold them: bf16 [rows, cols] to work.out, or nibbles [rows, cols / 2] there and
/// scales [rows, cols / 32] to `scales`. Of the target only format, rows and cols count.
void unpack(const Pack& work, std::uint8_t* scales, const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline product
