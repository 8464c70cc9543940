#include "model/random_rows.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "core/check.h"
#include "core/random.h"
#include "model/mxfp4.h"
#include "model/quantized.h"

namespace gauntlet::model {
namespace {

constexpr std::int64_t kChunk = 32;  // values made at a time: whole words, whole MXFP4 blocks
constexpr std::int64_t kBf16PerWord = 4;
constexpr std::int64_t kNibblesPerWord = 16;

/// Makes chunk `index` of a row: kChunk bf16 values. Of a random 16-bit integer the top bits of
/// its float are bf16.
void make_bf16(const Random& random, std::uint64_t first_word, float step, std::uint16_t* out) {
  std::int16_t integers[kChunk];
  for (std::int64_t i = 0; i < kChunk / kBf16PerWord; ++i) {
    const std::uint64_t word = random.bits(first_word + static_cast<std::uint64_t>(i));
    std::memcpy(integers + i * kBf16PerWord, &word, sizeof(word));
  }
  for (std::int64_t i = 0; i < kChunk; ++i) {
    const float value = static_cast<float>(integers[i]) * step;
    out[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  }
}

/// Of the matrix that this one may be a view of.
std::int64_t whole_cols(const Matrix& matrix) {
  return matrix.random_cols > 0 ? matrix.random_cols : matrix.cols;
}

std::uint64_t first_word_of(const Matrix& matrix, std::int64_t row) {
  check(matrix.random_first_col % kChunk == 0, "a view of random weights begins at a chunk");
  const std::int64_t per_word = matrix.type == WeightType::bf16 ? kBf16PerWord : kNibblesPerWord;
  const std::int64_t words_per_row =
      (whole_cols(matrix) + kChunk - 1) / kChunk * (kChunk / per_word);
  return static_cast<std::uint64_t>((matrix.random_first_row + row) * words_per_row +
                                    matrix.random_first_col / per_word);
}

/// One block: two words of nibbles, whose sum also decides its scale.
std::uint8_t make_block(const Random& random, std::uint64_t first_word,
                        const RandomMxfp4Scales& scales, std::uint8_t* nibbles) {
  const std::uint64_t words[2] = {random.bits(first_word), random.bits(first_word + 1)};
  std::memcpy(nibbles, words, sizeof(words));
  const std::uint64_t dice = (words[0] * 0x9E3779B97F4A7C15u + words[1]) >> 56;
  return static_cast<std::uint8_t>(scales.lower + (dice < scales.upper_of_256 ? 1 : 0));
}

/// Calls put(first column, count, values) for each chunk of a bf16 row.
template <class Put>
void for_chunks(const Matrix& matrix, std::int64_t row, Put put) {
  const Random random(matrix.random_key);
  const float step = random_bf16_step(whole_cols(matrix));
  std::uint64_t word = first_word_of(matrix, row);
  for (std::int64_t c = 0; c < matrix.cols; c += kChunk, word += kChunk / kBf16PerWord) {
    std::uint16_t values[kChunk];
    make_bf16(random, word, step, values);
    put(c, std::min(kChunk, matrix.cols - c), values);
  }
}

}  // namespace

float random_bf16_step(std::int64_t cols) {
  return std::sqrt(3.f / static_cast<float>(cols)) / 32768.f;
}

RandomMxfp4Scales random_mxfp4_scales(std::int64_t cols) {
  double mean_square = 0;
  for (const float value : kMxfp4Values) mean_square += value * value / 16.0;
  const double wanted = 1.0 / (static_cast<double>(cols) * mean_square);  // mean of 4^scale
  const int exponent = static_cast<int>(std::floor(std::log2(wanted) / 2));
  const double share = (wanted / std::ldexp(1.0, 2 * exponent) - 1) / 3;
  return {.lower = static_cast<std::uint8_t>(127 + exponent),
          .upper_of_256 = static_cast<std::uint32_t>(std::lround(share * 256))};
}

void read_random_row_bf16(const Matrix& matrix, std::int64_t row, std::uint16_t* out) {
  for_chunks(matrix, row, [out](std::int64_t first, std::int64_t count, const auto* values) {
    std::memcpy(out + first, values, static_cast<std::size_t>(count) * sizeof(*values));
  });
}

void read_random_row_mxfp4(const Matrix& matrix, std::int64_t row, std::uint8_t* nibbles,
                           std::uint8_t* scale_bytes) {
  const Random random(matrix.random_key);
  const RandomMxfp4Scales scales = random_mxfp4_scales(whole_cols(matrix));
  const std::uint64_t first = first_word_of(matrix, row);
  for (std::int64_t block = 0; block < matrix.cols / kMxfp4Block; ++block) {
    scale_bytes[block] = make_block(random, first + 2 * static_cast<std::uint64_t>(block), scales,
                                    nibbles + block * kMxfp4NibbleBytes);
  }
}

void read_random_row(const Matrix& matrix, std::int64_t row, float* out) {
  if (matrix.type == WeightType::bf16) {
    for_chunks(matrix, row, [out](std::int64_t first, std::int64_t count, const auto* values) {
      for (std::int64_t i = 0; i < count; ++i) out[first + i] = bf16_value(values[i]);
    });
    return;
  }
  check(matrix.type == WeightType::mxfp4, "random weights are bf16 or mxfp4");
  const Random random(matrix.random_key);
  const RandomMxfp4Scales scales = random_mxfp4_scales(whole_cols(matrix));
  const std::uint64_t first = first_word_of(matrix, row);
  for (std::int64_t block = 0; block < matrix.cols / kMxfp4Block; ++block) {
    std::uint8_t nibbles[kMxfp4NibbleBytes];
    const std::uint8_t scale =
        make_block(random, first + 2 * static_cast<std::uint64_t>(block), scales, nibbles);
    decode_mxfp4(nibbles, &scale, kMxfp4Block, out + block * kMxfp4Block);
  }
}

}  // namespace gauntlet::model
