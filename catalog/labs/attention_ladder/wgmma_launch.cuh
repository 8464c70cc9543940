// How attention by warpgroups is prepared and launched as a side.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <memory>

#include "catalog/labs/attention_ladder/lab.h"
#include "catalog/labs/attention_ladder/wgmma_attention.cuh"
#include "core/check.h"
#include "core/cuda/check.h"
#include "core/cuda/memory.h"
#include "core/cuda/tensor_map.h"
#include "lab/author/side.h"

namespace gauntlet::labs::attention_ladder::cuda {

struct MapOf {
  const void* address;
  std::int64_t rows;
  std::int64_t columns;
  int box_rows;
  DType type = DType::bf16;
};

/// Boxes as wide as the rows, at most 128 bytes, in the swizzle of that width.
inline void encode_swizzled(const MapOf& of, CUtensorMap& map) {
  const auto element = static_cast<std::int64_t>(size_of(of.type));
  const bool wide = of.columns * element >= 128;
  const auto encoded =
      encode_tensor_map({.address = of.address,
                         .type = of.type,
                         .rows = of.rows,
                         .columns = of.columns,
                         .box_rows = of.box_rows,
                         .box_columns = static_cast<int>((wide ? 128 : 64) / element),
                         .swizzle = wide ? TileSwizzle::bytes_128 : TileSwizzle::bytes_64},
                        map);
  if (!encoded) fail(encoded.error().message);
}

/// As many heads at a time as have room for keys and values in half of the L2, and divide them all.
inline int heads_in_cache(const Params& p, std::int64_t l2_bytes, std::int64_t element_bytes) {
  const std::int64_t head_bytes = 2 * element_bytes * p.sequence * p.head_dim;
  auto heads = static_cast<int>(std::clamp<std::int64_t>(l2_bytes / 2 / head_bytes, 1, p.heads));
  while (p.heads % heads != 0) --heads;
  return heads;
}

/// What a launch takes, with the counters that give out tiles.
template <class C>
struct PreparedAttention {
  AttentionMaps maps{};
  DeviceMemory counters{2 * sizeof(unsigned)};
  AttentionWork work{};
  unsigned blocks = 0;

  PreparedAttention(const Params& p, const lab::Cuda& cuda)
      : work{.tiles = {.heads = p.heads,
                       .heads_at_once = heads_in_cache(p, static_cast<std::int64_t>(cuda.l2_bytes),
                                                       C::kElementBytes),
                       .sequence = p.sequence,
                       .rows = C::kRows},
             .scale = p.log2_scale(),
             .next = reinterpret_cast<unsigned*>(counters.data())},
        blocks(static_cast<unsigned>(std::min(cuda.num_sms, work.tiles.count()))) {
    cuda_check(cudaMemset(counters.data(), 0, 2 * sizeof(unsigned)));
    cuda_check(cudaFuncSetAttribute(wgmma_attention<C>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(sizeof(AttentionShared<C>))));
  }

  void launch(cudaStream_t stream) const {
    wgmma_attention<C><<<blocks, C::kThreads, sizeof(AttentionShared<C>), stream>>>(maps, work);
    cuda_check(cudaGetLastError());
  }
};

template <class C>
lab::Side attend_in_bf16(const Params& p, const lab::Cuda& cuda) {
  const auto prepared = std::make_shared<PreparedAttention<C>>(p, cuda);
  const std::int64_t rows = std::int64_t{p.heads} * p.sequence;
  encode_swizzled({p.q, rows, p.head_dim, kGroupRows}, prepared->maps.q);
  encode_swizzled({p.k, rows, p.head_dim, C::kKeys}, prepared->maps.k);
  encode_swizzled({p.v, rows, p.head_dim, C::kKeys}, prepared->maps.v);
  encode_swizzled({p.out, rows, p.head_dim, kGroupRows}, prepared->maps.out);
  return [prepared, stream = cuda.stream] { prepared->launch(stream); };
}

/// What the last rung of the ladder in bf16 is.
inline lab::Side fastest_in_bf16(const Params& p, const lab::Cuda& cuda) {
  if (p.head_dim == 64) {
    return attend_in_bf16<Config<64, 3, Turns::ping_pong, Softmax::beside_products>>(p, cuda);
  }
  check(p.head_dim == 128, "rungs have heads of 64 and 128 dimensions");
  return attend_in_bf16<Config<128, 2, Turns::ping_pong, Softmax::beside_products>>(p, cuda);
}

}  // namespace gauntlet::labs::attention_ladder::cuda
