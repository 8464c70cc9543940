// Where keys and values lie: pages of 64 positions, and which of them a step's tokens see. One
// description for every attention kernel.
#pragma once
#include <cstdint>

struct __nv_bfloat16;

namespace gauntlet::kernels::cuda::inline attention {

inline constexpr int kHeadDim = 64;
inline constexpr int kPageTokens = 64;
inline constexpr int kMaxGroup = 8;  // query heads of one KV head: 1, 2, 4 or 8

/// fp8 is e4m3 with one float for each row of 64: value = element * scale, scale = amax / 448.
enum class KvFormat { bf16, fp8 };

/// One layer's cache, on the device.
struct KvCache {
  KvFormat format = KvFormat::bf16;
  void* k = nullptr;         // [pages, kv_heads, 64 tokens, 64 dims]
  void* v = nullptr;         // the same
  float* k_scale = nullptr;  // [pages, kv_heads, 64 tokens], fp8 only
  float* v_scale = nullptr;
  int num_pages = 0;
  int num_kv_heads = 0;
};

/// The number of a row of 64 elements.
constexpr std::int64_t kv_row(int num_kv_heads, int page, int kv_head, int token) {
  return (std::int64_t{page} * num_kv_heads + kv_head) * kPageTokens + token;
}

constexpr int kv_element_bytes(KvFormat format) { return format == KvFormat::bf16 ? 2 : 1; }

/// A step's tokens. Pointers are to device memory; the counts are what the host knows and sizes
/// grids by.
struct AttentionBatch {
  int num_sequences = 0;
  int num_tokens = 0;
  const std::int32_t* first_token = nullptr;     // [sequences + 1], rows of q
  const std::int32_t* context = nullptr;         // [sequences], positions held before this step
  const std::int32_t* table = nullptr;           // [sequences, table_stride], -1: no page
  const std::int32_t* token_sequence = nullptr;  // [tokens]
  int table_stride = 0;
  int max_query = 0;    // most tokens of one sequence
  int max_context = 0;  // most positions of one sequence, this step's included; an upper bound
};

/// out[token, head] = softmax over the visible keys and the sink, times the values. Scores are
/// scaled by 1/8, sinks are not. A token sees `window` positions, its own included; 0: all.
struct Attention {
  const __nv_bfloat16* q = nullptr;  // [tokens, heads, 64], rotated
  __nv_bfloat16* out = nullptr;      // the same
  const float* sinks = nullptr;      // [heads]
  KvCache cache = {};                // holds this step's tokens already
  AttentionBatch batch = {};
  int num_heads = 0;
  int window = 0;
};

}  // namespace gauntlet::kernels::cuda::inline attention
