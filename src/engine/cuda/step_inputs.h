// What a step needs on the device, in one stretch of memory that one copy brings over. Where things
// lie depends on the step's shape alone, so that a captured graph finds them again.
#pragma once
#include <compare>
#include <cstdint>
#include <deque>
#include <span>

#include "core/cuda/memory.h"
#include "engine/cuda/host_buffer.h"
#include "engine/kv/kv_pool.h"
#include "kernels/cuda/kv_cache.h"
#include "kernels/cuda/sample.h"

namespace gauntlet::engine::cuda {

/// What the host knows of a step; launches depend on nothing else.
struct StepShape {
  int tokens = 0;
  int sequences = 0;
  int table_stride = 0;  // pages of the longest sequence, or more
  int logit_rows = 0;
  int max_query = 0;     // 1: every sequence has one token
  bool guesses = false;  // and some are the same sequence's, further on
  bool greedy = true;    // no row is drawn at random
  bool targets = false;  // log-probabilities of given tokens are wanted
  int mask_words = 0;    // of a row's allowed ids; 0: everything is allowed

  int max_context() const { return table_stride * kernels::cuda::kPageTokens; }
  auto operator<=>(const StepShape&) const = default;
};

struct StepPointers {
  std::int32_t* real_tokens = nullptr;          // [1]; rows from there on are padding
  std::int32_t* ids = nullptr;                  // [tokens]
  std::int32_t* first_token = nullptr;          // [sequences + 1]
  std::int32_t* context = nullptr;              // [sequences]
  std::int32_t* token_sequence = nullptr;       // [tokens]
  std::int32_t* tables[kNumKvGroups] = {};      // [sequences, table_stride]
  std::int32_t* logit_rows = nullptr;           // [logit_rows], rows of x
  std::int32_t* targets = nullptr;              // [logit_rows]
  kernels::cuda::DrawParams* params = nullptr;  // [logit_rows]
  std::uint32_t* allowed = nullptr;             // [logit_rows, mask_words]
};

/// On the device there is one place, which uploads come to in the order of the stream; on the host
/// several, so that one can be filled while another is still on its way.
class StepInputs {
 public:
  /// Has room for each of these, and for what is smaller.
  StepInputs(std::span<const StepShape> largest, int num_staged, HostMemory host_memory);

  StepPointers on_host(const StepShape& shape, int staged) const;
  StepPointers on_device(const StepShape& shape) const;
  void upload(const StepShape& shape, int staged, cudaStream_t stream) const;

 private:
  std::int64_t capacity_bytes_;
  std::deque<HostBuffer> host_;
  DeviceMemory device_;
};

}  // namespace gauntlet::engine::cuda
