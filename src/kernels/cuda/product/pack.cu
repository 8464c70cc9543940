// Fragments: a thread writes one 32-bit word, two bf16 elements or eight FP4 ones. Rows: a thread
// writes an element, or the 32 that share a scale.
#include <cuda_bf16.h>

#include <algorithm>

#include "core/random.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/product/pack.h"

namespace gauntlet::kernels::cuda::inline product {
namespace {

constexpr int kThreads = 256;
constexpr int kBlock = 32;  // elements that share a scale

/// Where a row of the target comes from; rows past the end have no source.
struct Origin {
  const RowSource* source = nullptr;
  std::int64_t row = 0;
};

__device__ Origin origin_of(const Pack& work, std::int64_t row) {
  if (work.order == RowOrder::paired) {
    const RowSource& source = work.sources[row % kTileRows / 8];
    const std::int64_t from = row / kTileRows * 8 + row % 8;
    return {from < source.rows ? &source : nullptr, from};
  }
  for (const RowSource& source : work.sources) {
    if (row < source.rows) return {&source, row};
    row -= source.rows;
  }
  return {};
}

/// As model/random_rows makes them: whole chunks of 32 to a row, four numbers to a word.
__device__ std::uint16_t random_bf16(const RowSource& source, std::int64_t row, std::int64_t col,
                                     std::int64_t cols, float step) {
  if (source.random_cols > 0) cols = source.random_cols;
  col += source.first_random_col;
  const std::int64_t words = (cols + kBlock - 1) / kBlock * (kBlock / 4);
  const std::uint64_t index =
      static_cast<std::uint64_t>((source.first_random_row + row) * words + col / 4);
  const std::uint64_t word = Random(source.random_key).bits(index);
  const auto integer = static_cast<std::int16_t>(word >> (16 * (col % 4)));
  return static_cast<std::uint16_t>(__float_as_uint(static_cast<float>(integer) * step) >> 16);
}

/// The two words of nibbles of a block.
struct RandomBlock {
  std::uint64_t words[2];
};
__device__ RandomBlock random_block(const RowSource& source, std::int64_t row, std::int64_t block,
                                    std::int64_t cols) {
  if (source.random_cols > 0) cols = source.random_cols;
  block += source.first_random_col / kBlock;
  const std::int64_t per_row = (cols + kBlock - 1) / kBlock * 2;
  const std::uint64_t first =
      static_cast<std::uint64_t>((source.first_random_row + row) * per_row + 2 * block);
  const Random random(source.random_key);
  return {{random.bits(first), random.bits(first + 1)}};
}

__device__ std::uint32_t nibble_of(const Pack& work, const Origin& from, std::int64_t col) {
  if (from.source == nullptr || col >= work.cols) return 0;
  if (from.source->data != nullptr) {
    const auto* bytes = static_cast<const std::uint8_t*>(from.source->data);
    return bytes[from.row * (work.cols / 2) + col / 2] >> (4 * (col % 2)) & 15;
  }
  const RandomBlock made = random_block(*from.source, from.row, col / kBlock, work.cols);
  return static_cast<std::uint32_t>(made.words[col % kBlock / 16] >> (4 * (col % 16))) & 15;
}

__device__ int scale_of(const Pack& work, const Origin& from, std::int64_t col) {
  if (from.source == nullptr || col >= work.cols) return 0;
  if (from.source->data != nullptr) {
    return from.source->scales[from.row * (work.cols / kBlock) + col / kBlock];
  }
  const RandomBlock made = random_block(*from.source, from.row, col / kBlock, work.cols);
  const std::uint64_t dice = (made.words[0] * 0x9E3779B97F4A7C15u + made.words[1]) >> 56;
  return work.random_scales.lower + (dice < work.random_scales.upper_of_256 ? 1 : 0);
}

__device__ std::uint16_t bf16_of(const Pack& work, const Origin& from, std::int64_t col) {
  if (from.source == nullptr || col >= work.cols) return 0;
  if (work.source_format == WeightFormat::mxfp4) {
    constexpr float kValues[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    const std::uint32_t nibble = nibble_of(work, from, col);
    float value = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      value = (nibble & 7) == static_cast<unsigned>(i) ? kValues[i] : value;
    value = ldexpf(value, scale_of(work, from, col) - 127);
    return static_cast<std::uint16_t>(__float_as_uint(nibble & 8 ? -value : value) >> 16);
  }
  if (from.source->data != nullptr) {
    return static_cast<const std::uint16_t*>(from.source->data)[from.row * work.cols + col];
  }
  return random_bf16(*from.source, from.row, col, work.cols, work.random_step);
}

/// The inverse of fragment_place() for a lane's word.
struct WordPlace {
  std::int64_t row;
  std::int64_t col;
};
__device__ WordPlace place_of(std::int64_t block, std::int64_t col_blocks, int tile, int step,
                              int lane, int reg) {
  return {block / col_blocks * kBlockRows + tile * kTileRows + lane / 4 + reg % 2 * 8,
          block % col_blocks * kBlockCols + step * 16 + lane % 4 * 2 + reg / 2 * 8};
}

__global__ void __launch_bounds__(kThreads)
    pack_bf16_kernel(const __grid_constant__ Pack work, std::int64_t words) {
  const std::int64_t col_blocks = work.target.col_blocks();
  for (std::int64_t w = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x; w < words;
       w += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    const std::int64_t block = w / (kBf16BlockBytes / 4);
    const int in = static_cast<int>(w % (kBf16BlockBytes / 4));
    const WordPlace at = place_of(block, col_blocks, in / 512, in / 128 % 4, in / 4 % 32, in % 4);
    const Origin from = origin_of(work, at.row);
    const std::uint32_t low = bf16_of(work, from, at.col), high = bf16_of(work, from, at.col + 1);
    reinterpret_cast<std::uint32_t*>(work.out)[w] = low | high << 16;
  }
}

__global__ void __launch_bounds__(kThreads)
    pack_mxfp4_kernel(const __grid_constant__ Pack work, std::int64_t words) {
  const std::int64_t col_blocks = work.target.col_blocks();
  constexpr int kNibbleWords = 4 * kMxfp4TileBytes / 4;
  for (std::int64_t w = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x; w < words;
       w += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    const std::int64_t block = w / (kMxfp4BlockBytes / 4);
    const int in = static_cast<int>(w % (kMxfp4BlockBytes / 4));
    std::uint32_t word = 0;
    if (in < kNibbleWords) {
      const int tile = in / 128, lane = in / 4 % 32, step = in % 4;
#pragma unroll
      for (int reg = 0; reg < 4; ++reg) {
        const WordPlace at = place_of(block, col_blocks, tile, step, lane, reg);
        const Origin from = origin_of(work, at.row);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          word |= spread_fp4(nibble_of(work, from, at.col + half), reg, half);
        }
      }
    } else {
      const int tile = (in - kNibbleWords) / 8, lane = (in - kNibbleWords) % 8 * 4;
#pragma unroll
      for (int byte = 0; byte < 4; ++byte) {
        const WordPlace at = place_of(block, col_blocks, tile, byte % 2 * 2, lane, byte / 2);
        const int scale = scale_of(work, origin_of(work, at.row), at.col);
        word |= static_cast<std::uint32_t>(min(scale, kMxfp4LargestScale) + kMxfp4ScaleBias)
                << (8 * byte);
      }
    }
    reinterpret_cast<std::uint32_t*>(work.out)[w] = word;
  }
}

__global__ void __launch_bounds__(kThreads) unpack_bf16_kernel(const __grid_constant__ Pack work) {
  const std::int64_t count = work.target.rows * work.cols;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    reinterpret_cast<std::uint16_t*>(work.out)[i] =
        bf16_of(work, origin_of(work, i / work.cols), i % work.cols);
  }
}

/// A thread writes the 32 elements of a scale.
__global__ void __launch_bounds__(kThreads)
    unpack_mxfp4_kernel(const __grid_constant__ Pack work, std::uint8_t* scales) {
  const std::int64_t per_row = work.cols / kBlock, count = work.target.rows * per_row;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    const Origin from = origin_of(work, i / per_row);
    const std::int64_t first = i % per_row * kBlock;
    const auto word = [&](int number) {
      std::uint32_t nibbles = 0;
#pragma unroll
      for (int k = 0; k < 8; ++k)
        nibbles |= nibble_of(work, from, first + 8 * number + k) << (4 * k);
      return nibbles;
    };
    reinterpret_cast<uint4*>(work.out)[i] = {word(0), word(1), word(2), word(3)};
    scales[i] = static_cast<std::uint8_t>(scale_of(work, from, first));
  }
}

Shape shape_for(std::int64_t items) {
  constexpr std::int64_t kMostBlocks = 1 << 16;
  const std::int64_t blocks = std::min((items + kThreads - 1) / kThreads, kMostBlocks);
  return {.grid = dim3(static_cast<unsigned>(blocks)), .block = dim3(kThreads)};
}

}  // namespace

void pack(const Pack& work, const Launch& how) {
  const std::int64_t words = work.target.bytes() / 4;
  if (work.target.format == WeightFormat::mxfp4) {
    check(work.source_format == WeightFormat::mxfp4, "only MXFP4 packs into MXFP4");
    launch(pack_mxfp4_kernel, shape_for(words), how, work, words);
  } else {
    launch(pack_bf16_kernel, shape_for(words), how, work, words);
  }
}

void unpack(const Pack& work, std::uint8_t* scales, const Launch& how) {
  const std::int64_t elements = work.target.rows * work.cols;
  if (work.target.format == WeightFormat::mxfp4) {
    check(work.source_format == WeightFormat::mxfp4, "only MXFP4 unpacks into MXFP4");
    check(work.cols % kBlock == 0, "rows of MXFP4 are whole blocks");
    launch(unpack_mxfp4_kernel, shape_for(elements / kBlock), how, work, scales);
  } else {
    launch(unpack_bf16_kernel, shape_for(elements), how, work);
  }
}

}  // namespace gauntlet::kernels::cuda::inline product
