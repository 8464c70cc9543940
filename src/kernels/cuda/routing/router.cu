// A cluster of blocks routes eight tokens at a time. It has the weights under way before the kernel
// in front has ended and keeps them in registers from group to group.
#include <algorithm>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/routing/choose_experts.cuh"
#include "kernels/cuda/routing/dispatch_few.cuh"
#include "kernels/cuda/routing/router.h"
#include "kernels/cuda/routing/router_group.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "ptx/grid_dependency.cuh"

namespace gauntlet::kernels::cuda::inline routing {
namespace {

/// Experts that kernels are made for; a router takes the first that is enough.
constexpr int kFewExperts = 32;
/// Blocks of prompts on an SM: while a cluster waits for its sums, another loads.
constexpr int kBlocksPerSm = 2;

__host__ __device__ constexpr std::int64_t groups_of(const Router& work) {
  return (work.num_tokens + kGroupTokens - 1) / kGroupTokens;
}

/// The token of its group whose experts this warp chooses.
template <Choosers kChoosers>
__device__ __forceinline__ int token_to_choose(const RouterPlace& at) {
  if constexpr (kChoosers == Choosers::first_block) return at.rank == 0 ? at.warp : kGroupTokens;
  return at.rank + at.warp * router_blocks();
}

/// All groups of this cluster; a warp has the choice of its token of the last one.
template <int kExperts, Rows kRows, Choosers kChoosers>
__device__ __forceinline__ Choice route_groups(const Router& work, const RouterPlace& at) {
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ std::uint64_t arrived[2];
  auto* of_warp = reinterpret_cast<Sums<kExperts>*>(memory);
  Sums<kExperts>* of_block = of_warp + kRouterWarps;
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(arrived[0], 1);
    ptx::mbarrier_init(arrived[1], 1);
    ptx::fence_mbarrier_init();
  }
  __syncwarp();
  ptx::cluster_arrive_relaxed();
#endif
  const int column = at.column(at.first_piece());
  HeldWeights<kExperts> held;
  if constexpr (kRows == Rows::narrow) {
    load_weights(work, 0, column, held.router);
    load_eight(work.norm_weight + column, column < work.hidden, held.norm);
  }
  float bias[kExperts / 32];
#pragma unroll
  for (int k = 0; k < kExperts / 32; ++k) {
    const int expert = static_cast<int>(threadIdx.x % 32) + 32 * k;
    bias[k] = expert < work.num_experts ? __ldg(work.bias + expert) : 0;
  }
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();

  const auto row_of = [&](std::int64_t group) -> const float* {
    const std::int64_t token = group * kGroupTokens + at.row;
    return token < work.num_tokens ? work.x + token * work.hidden : nullptr;
  };
  float x[8], y[8];  // of a narrow row: x a group ahead
  const auto load_ahead = [&](std::int64_t group) {
    if constexpr (kRows == Rows::narrow) {
      const float* row = row_of(group);
      load_eight(row + column, row != nullptr && column < work.hidden, x);
    }
  };
  const std::int64_t clusters = gridDim.x / router_blocks();
  std::int64_t group = blockIdx.x / router_blocks();
  load_ahead(group);
  const std::int64_t real_tokens =
      work.real_tokens == nullptr ? work.num_tokens : *work.real_tokens;
#if __CUDA_ARCH__ >= 900
  ptx::cluster_wait();  // every block is there to be sent to
#endif
  Choice choice;
  for (unsigned turn = 0; group < groups_of(work); ++turn, group += clusters) {
    const Exchange<kExperts> exchange{of_block + turn % 2 * router_blocks(), arrived[turn % 2]};
    const std::int64_t first = group * kGroupTokens;
    const int tokens = static_cast<int>(min(std::int64_t{kGroupTokens}, work.num_tokens - first));
    if constexpr (kRows == Rows::narrow) {
      sum_narrow(at, held, x, y, of_warp[at.warp]);
    } else {
      sum_wide(work, at, row_of(group), of_warp[at.warp]);
    }
    load_ahead(group + clusters);
    __syncthreads();
    exchange.template send<kChoosers>(at, tokens, of_warp);
    exchange.receive(turn / 2 % 2);
    // The next turn writes what the warps summed: all must have read it.
    if (group + clusters < groups_of(work)) __syncthreads();
    if (const int token = token_to_choose<kChoosers>(at); token < tokens) {
      const float scale = exchange.norm_scale(work, token);
      float logits[kExperts / 32];
#pragma unroll
      for (int k = 0; k < kExperts / 32; ++k) {
        const int expert = static_cast<int>(threadIdx.x % 32) + 32 * k;
        logits[k] = __fmaf_rn(scale, exchange.sum(token, expert), bias[k]);
      }
      choice = choose(work, first + token, first + token < real_tokens, logits);
    }
    if (at.row < tokens) {
      const float scale = exchange.norm_scale(work, at.row);
      if constexpr (kRows == Rows::wide) {
        store_wide(work, at, first + at.row, row_of(group), scale);
      } else if (column < work.hidden) {
        store_normed(work, first + at.row, column, y, scale);
      }
    }
  }
  return choice;
}

template <int kExperts, Rows kRows>
__global__ void __launch_bounds__(kRouterThreads, kExperts == kFewExperts ? kBlocksPerSm : 1)
    route_kernel(const Router work) {
  route_groups<kExperts, kRows, Choosers::every_block>(work, router_place());
}

/// A group for each cluster.
template <int kExperts, Rows kRows>
__global__ void __launch_bounds__(kRouterThreads, kExperts == kFewExperts ? kBlocksPerSm : 1)
    route_and_dispatch_kernel(const Router work, const Dispatch dispatched,
                              std::int32_t* finished) {
  __shared__ DispatchBoard<kExperts> board;
  __shared__ DispatchChunk chunk;
  __shared__ bool is_last;
  static_assert(kChunk + kExperts < kRouterThreads);
  const RouterPlace at = router_place();
  const Choice own = route_groups<kExperts, kRows, Choosers::first_block>(work, at);
  if (at.rank != 0) return;
  const int per_token = work.experts_per_token;
  const int picks = static_cast<int>(work.num_tokens) * per_token;
  if (work.num_tokens <= kGroupTokens && picks <= kChunk) {
    const int lane = threadIdx.x % 32, pick = at.warp * per_token + lane;
    if (lane < per_token && pick < picks) {
      chunk.chosen[pick] = own.expert, chunk.weights[pick] = own.weight;
    }
    if (at.warp == kRouterWarps - 1 && lane >= picks) chunk.chosen[lane] = -1;
    __syncthreads();
    return dispatch_chunk(dispatched, chunk);
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    const int clusters = static_cast<int>(gridDim.x) / router_blocks();
    is_last = atomicAdd(finished, 1) == clusters - 1;
    if (is_last) *finished = 0;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  dispatch_few<kRouterThreads>(dispatched, board);
}

void check_shape(const Router& work) {
  check(work.hidden % 8 == 0 && work.hidden <= kWidestRouter && work.normed_stride % 8 == 0,
        "a row is too wide for the router, or not of whole 16 bytes");
  check(work.num_experts <= kMostRouterExperts && work.experts_per_token <= kMostExpertsPerToken,
        "more experts than the router was made for");
  check(work.experts_per_token <= work.num_experts, "more choices than experts");
}

/// Blocks that share a group: code that was not compiled for sm_90 has no clusters.
unsigned blocks_of_group() {
  static const unsigned blocks = [] {
    cudaFuncAttributes attributes{};
    cuda_check(cudaFuncGetAttributes(&attributes, route_kernel<kFewExperts, Rows::narrow>));
    return attributes.ptxVersion >= 90 ? kRouterCluster : 1;
  }();
  return blocks;
}

template <int kExperts, auto kKernel, typename... Arguments>
void launch_clusters(std::int64_t clusters, unsigned blocks, const Launch& how,
                     const Arguments&... arguments) {
  const std::size_t shared = sizeof(Sums<kExperts>) * (kRouterWarps + 2 * blocks);
  allow_shared_memory<kKernel>();
  launch(kKernel,
         {.grid = dim3(static_cast<unsigned>(clusters) * blocks),
          .block = dim3(kRouterThreads),
          .shared_bytes = shared,
          .cluster = blocks},
         how, arguments...);
}

/// Calls with the experts and the rows that a kernel is made for.
template <class Call>
void with_kernel_for(const Router& work, unsigned blocks, const Call& call) {
  const bool is_narrow = work.hidden <= static_cast<int>(blocks) * kRouterWarps * kPieceColumns;
  if (work.num_experts <= kFewExperts) {
    is_narrow ? call.template operator()<kFewExperts, Rows::narrow>()
              : call.template operator()<kFewExperts, Rows::wide>();
  } else {
    is_narrow ? call.template operator()<kMostRouterExperts, Rows::narrow>()
              : call.template operator()<kMostRouterExperts, Rows::wide>();
  }
}

}  // namespace

void route(const Router& work, const Launch& how) {
  check_shape(work);
  const unsigned blocks = blocks_of_group();
  const std::int64_t resident = work.num_sms / static_cast<int>(blocks) * kBlocksPerSm;
  with_kernel_for(work, blocks, [&]<int kExperts, Rows kRows>() {
    launch_clusters<kExperts, route_kernel<kExperts, kRows>>(std::min(groups_of(work), resident),
                                                             blocks, how, work);
  });
}

void route_and_dispatch(const Router& work, const Dispatch& dispatched, std::int32_t* finished,
                        const Launch& how) {
  check_shape(work);
  check(work.num_tokens <= kMostDispatchTokens, "too many tokens to dispatch in one launch");
  const unsigned blocks = blocks_of_group();
  with_kernel_for(work, blocks, [&]<int kExperts, Rows kRows>() {
    launch_clusters<kExperts, route_and_dispatch_kernel<kExperts, kRows>>(
        groups_of(work), blocks, how, work, dispatched, finished);
  });
}

}  // namespace gauntlet::kernels::cuda::inline routing
