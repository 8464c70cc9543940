// The one dispatch point of the CPU kernels: a table of functions per SIMD level, all compiled from
// the same source, chosen at run time from what the machine has.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/cpu/packed.h"

namespace gauntlet::kernels::cpu {

enum class SimdLevel { portable, avx2, avx512, avx512_bf16, amx };
inline constexpr SimdLevel kSimdLevels[] = {SimdLevel::portable, SimdLevel::avx2, SimdLevel::avx512,
                                            SimdLevel::avx512_bf16, SimdLevel::amx};

std::string_view name_of(SimdLevel level);
/// The levels this machine can run, the best last.
std::vector<SimdLevel> available_levels();
std::optional<SimdLevel> parse_level(std::string_view name);

/// Tokens that a product by tiles takes at once.
inline constexpr int kTileTokens = 16;

/// A batch of row vectors in the precision a product wants them in. Rows are `stride` elements
/// apart and padded with zeros to a multiple of 32. A product by tiles reads kTileTokens rows at a
/// time and ignores what it was not asked for: as many rows less one must follow the last.
struct Activations {
  const float* f32 = nullptr;
  const std::uint16_t* bf16 = nullptr;  // tiles read int8 from here, too, in an order of their own
  const std::int8_t* i8 = nullptr;
  const float* i8_scales = nullptr;          // [row][stride/32], half of the block's step
  const std::int32_t* i8_offsets = nullptr;  // [row][stride/32], -12 * sum of the block
  std::int64_t stride = 0;
  /// With int8 weights a value is 128 * i8 + i8_low, i8_scales its step and i8_offsets minus the
  /// sum of the block's values.
  const std::int8_t* i8_low = nullptr;
};

enum class Precision { f32, bf16, int8 };
enum class Output { store, accumulate };

/// out[row(t)][n] (+)= weight(t) * (sum_k w[n][k] * x[row(t)][k] + bias[n]) for the rows of the
/// groups [group_begin, group_end). Each output is summed in an order that depends on k alone, so
/// it is the same whatever else is in the batch.
struct Product {
  PackedMatrix weights;
  Precision precision = Precision::f32;  // bf16 with bf16 weights, int8 with mxfp4 and int8
  std::int64_t group_begin = 0;
  std::int64_t group_end = 0;
  std::int64_t num_tokens = 0;
  Activations x;
  const std::int32_t* x_rows = nullptr;  // which row of x each token is; null: its own number
  const float* bias = nullptr;           // [rows]
  Output output = Output::store;
  float* out = nullptr;  // element (t, n) is at out[row * out_stride + n - out_first]
  std::int64_t out_stride = 0;
  std::int64_t out_first = 0;
  const std::int32_t* out_rows = nullptr;  // null: the token's own number
  const float* token_weights = nullptr;    // null: 1
};

/// Attention of some query rows over one sequence's cache, for one KV head. The cache comes in
/// pages of 16 positions: keys [head_dim][16], values [16][head_dim]; as bf16, neighbours of the
/// first dimension in one word: keys [head_dim / 2][16][2], values [8][head_dim][2].
enum class KvType { f32, bf16 };
inline constexpr std::int64_t kNoTail = std::numeric_limits<std::int64_t>::max();
struct AttentionTask {
  const float* q = nullptr;  // row r at q + r * q_stride: [head_dim], already scaled
  std::int64_t q_stride = 0;
  float* out = nullptr;
  std::int64_t out_stride = 0;
  int num_rows = 0;                         // at most kAttentionRows
  const std::int64_t* positions = nullptr;  // of each row: it sees (position - window, position]
  std::int64_t window = 0;                  // 0: all positions
  const float* sinks = nullptr;             // of each row
  int head_dim = 0;
  KvType type = KvType::f32;
  const std::int32_t* pages = nullptr;  // page number of positions [16 i, 16 i + 16)
  const std::uint8_t* k_base = nullptr;
  const std::uint8_t* v_base = nullptr;
  std::int64_t page_stride_bytes = 0;
  /// Pages from this one on lie elsewhere, one behind the other: what a path through a tree of
  /// guesses has there, each key and value at its position (path_pages.h).
  std::int64_t tail_page = kNoTail;
  const std::uint8_t* tail_keys = nullptr;
  const std::uint8_t* tail_values = nullptr;
  float* scratch = nullptr;  // naive attention: num_rows * (positions + 16) floats
};
inline constexpr int kAttentionRows = 16;
inline constexpr int kPageTokens = 16;

/// Rows of approximate products, each within its bound of the exact one:
/// bound = per_residual * residual_norms[row] + per_norm * norms[row] + constant.
struct BoundRows {
  std::int64_t rows = 0;
  const float* values = nullptr;  // [rows rounded up to 16], and so the norms
  const float* residual_norms = nullptr;
  const float* norms = nullptr;
  float per_residual = 0;
  float per_norm = 0;
  float constant = 0;
  float* group_uppers = nullptr;  // out: per sixteen rows the largest value + bound
};

struct KernelTable {
  SimdLevel level;
  /// Around a thread's calls of other kernels: tiles have to be given their shapes, and a thread
  /// that keeps them makes every change of threads dearer.
  void (*begin_work)();
  void (*end_work)();
  void (*product)(const Product&);
  /// out = x / rms(x) * weight
  void (*rms_norm)(const float* x, const float* weight, float epsilon, std::int64_t width,
                   float* out);
  void (*to_bf16)(const float* x, std::int64_t count, std::uint16_t* out);
  /// Blocks of 32 to int8; scales, offsets and, where products are by tiles, the same values as
  /// bf16, as Activations wants them.
  void (*to_int8)(const float* x, std::int64_t count, std::int8_t* out, float* scales,
                  std::int32_t* offsets, std::uint16_t* pairs);
  /// The clamped SwiGLU of gpt-oss over 32 gates followed by 32 ups.
  void (*swiglu)(const float* gate_up, float limit, float* out);
  void (*flash_attention)(const AttentionTask&);
  void (*naive_attention)(const AttentionTask&);
  /// Index of the largest, the lowest on ties.
  std::int64_t (*argmax)(const float* x, std::int64_t count);
  /// log(sum(exp(x)))
  double (*log_sum_exp)(const float* x, std::int64_t count);
  /// The largest value - bound.
  float (*bound_rows)(const BoundRows&);
};

/// Throws where the machine lacks the level.
const KernelTable& kernels(SimdLevel level);

}  // namespace gauntlet::kernels::cpu
