// MXFP4 products of few tokens are bound by instructions, so the warps that multiply do nothing
// else: another copies stripes of 64 rows into their ring. A team of four warps, each with a tile
// of its rows, takes a stripe of its own while there are enough for all; the last few all teams
// share.
#include <algorithm>

#include "kernels/cuda/device_facts.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/product/decode_mxfp4_bulk.h"
#include "kernels/cuda/product/decode_mxfp4_bulk_feed.cuh"
#include "kernels/cuda/product/dequantize_fp4.cuh"
#include "kernels/cuda/product/epilogue.cuh"
#include "kernels/cuda/product/fp4_sums.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "ptx/fence.cuh"
#include "ptx/grid_dependency.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mma.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/shared_load.cuh"

namespace gauntlet::kernels::cuda::inline product {
namespace {

constexpr int kWorkersBarrier = 1;
constexpr std::int64_t kManyStripesPerSm = 4;

/// With two tiles there are as many sums as weights: those are scaled.
__device__ __forceinline__ void add_products(const uint4& steps, std::uint32_t factors,
                                             const std::uint32_t (&x_row)[2], float (&sums)[2][4]) {
  const std::uint32_t step[4] = {steps.x, steps.y, steps.z, steps.w};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t upper = scale_pair(factors, half), lower = scale_pair(factors, 2 + half);
    std::uint32_t a[2][4];
    dequantize_fp4(step[2 * half], upper, lower, a[0]);
    dequantize_fp4(step[2 * half + 1], upper, lower, a[1]);
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      std::uint32_t b[4];
      ptx::ldmatrix_x4(b, x_row[n] + half * kHalfBlockBytes);
      ptx::mma_m16n8k16_bf16(sums[n], a[0], {b[0], b[1]});
      ptx::mma_m16n8k16_bf16(sums[n], a[1], {b[2], b[3]});
    }
  }
}

/// A stage, or what is left of the columns.
template <int kTiles>
__device__ __forceinline__ void multiply(std::uint32_t words, std::uint32_t scales, int left,
                                         std::uint32_t (&x_row)[kTiles], float (&sums)[kTiles][4]) {
#pragma unroll
  for (int i = 0; i < kStripeStageBlocks; ++i) {
    if (i > 0 && i >= left) break;
    const uint4 steps = ptx::load_shared_16(words + i * kMxfp4BlockBytes);
    const std::uint32_t factors = ptx::load_shared_4(scales + i * kMxfp4BlockBytes);
    if constexpr (kTiles == 1) {
      add_scaled_sums(steps, factors, x_row, sums);
    } else {
      add_products(steps, factors, x_row, sums);
    }
#pragma unroll
    for (int n = 0; n < kTiles; ++n) x_row[n] += 2 * kHalfBlockBytes;
  }
}

/// What a warp of a team multiplies: a tile of every stripe.
template <class C>
class Worker {
 public:
  using Memory = StripeMemory<C>;

  __device__ __forceinline__ Worker(const Product& p, const DecodeLayout& layout, Memory& shared)
      : p_(p), layout_(layout), shared_(shared) {
    const std::uint32_t ring = ptx::shared_address(shared.rings[team()]);
    words_ = ring + member() * kMxfp4TileBytes + lane() * 16;
    scales_ =
        ring + kTilesPerBlock * kMxfp4TileBytes + member() * kMxfp4ScaleBytes + lane() / 4 * 4;
  }

  /// A run with columns for kTiles of the token tiles.
  template <int kTiles>
  __device__ __forceinline__ void compute(StripeWalk<C::kTeams>& walk, std::uint32_t x_address) {
    XRows<kTiles> x;
    x.set(layout_, shared_.run, x_address);
    const int share = share_blocks(layout_.col_blocks);
    for (; walk.whole(); walk.advance()) {
      RowPair bias;
      if (kTiles == 1) bias = bias_for(walk.stripe);
      float all[kTiles][4] = {};
#pragma unroll 1
      for (int first = 0; first < layout_.col_blocks; first += share) {
        float sums[kTiles][4] = {};
        sum_share(first, min(layout_.col_blocks, first + share), x, sums);
        add(sums, all);
      }
      if (kTiles > 1) bias = bias_for(walk.stripe);
      finish_tile(walk.stripe, all, bias);
    }
    for (; walk.in_run(); walk.advance()) {
      RowPair bias;
      if (kTiles == 1) bias = bias_for(walk.stripe);
      float sums[kTiles][4] = {};
      const int first = team() * share;
      if (team() < kStripeShares) sum_share(first, min(layout_.col_blocks, first + share), x, sums);
      if (kTiles > 1) bias = bias_for(walk.stripe);
      join(walk.stripe, sums, bias);
    }
  }

 private:
  static __device__ __forceinline__ int lane() { return threadIdx.x % 32; }
  static __device__ __forceinline__ int member() { return threadIdx.x / 32 % kStripeTeamWarps; }
  static __device__ __forceinline__ int team() { return threadIdx.x / kStripeTeamThreads; }
  static __device__ __forceinline__ int tile_of(int stripe) {
    return stripe * kTilesPerBlock + member();
  }

  __device__ __forceinline__ RowPair bias_for(int stripe) const {
    return bias_of(p_, shared_.run.expert, tile_of(stripe), lane() / 4);
  }

  template <int kTiles>
  static __device__ __forceinline__ void add(const float (&sums)[kTiles][4],
                                             float (&all)[kTiles][4]) {
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) all[n][i] += sums[n][i];
    }
  }

  template <int kTiles>
  __device__ __forceinline__ void sum_share(int first, int end, const XRows<kTiles>& x,
                                            float (&sums)[kTiles][4]) {
    std::uint32_t x_row[kTiles];
#pragma unroll
    for (int n = 0; n < kTiles; ++n) x_row[n] = x.at(n, first);
    for (int left = end - first; left > 0; left -= kStripeStageBlocks) {
      while (!ptx::mbarrier_try_wait(shared_.full[team()][place_.stage], place_.parity)) {
      }
      const std::uint32_t stage = place_.stage * kStripeStageBytes;
      multiply(words_ + stage, scales_ + stage, left, x_row, sums);
      ptx::mbarrier_arrive(shared_.empty[team()][place_.stage]);  // a lane for what it read
      place_.advance();
    }
  }

  template <int kTiles>
  __device__ __forceinline__ void finish_tile(int stripe, const float (&all)[kTiles][4],
                                              RowPair bias) {
    const int first_column = shared_.run.first_column, num_columns = shared_.run.num_columns;
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int which = 0; which < 2; ++which) {
        const int column = n * 8 + lane() % 4 * 2 + which;
        if (column < num_columns) {
          finish(p_, tile_of(stripe), lane() / 4, first_column + column,
                 {all[n][which] * kUnscale, all[n][2 + which] * kUnscale}, bias);
        }
      }
    }
  }

  /// All teams' shares of a stripe; another team finishes each time.
  template <int kTiles>
  __device__ __forceinline__ void join(int stripe, const float (&sums)[kTiles][4], RowPair bias) {
    auto& partial = shared_.partial[stripe % Memory::kPartials];
    if constexpr (Memory::kPartials == 1) ptx::named_barrier_sync(kWorkersBarrier, C::kWorkers);
#pragma unroll
    for (int n = 0; n < kTiles && team() < kStripeShares; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) partial[team()][member()][n][i][lane()] = sums[n][i];
    }
    ptx::named_barrier_sync(kWorkersBarrier, C::kWorkers);
    if (stripe % C::kTeams != team()) return;
    float all[kTiles][4] = {};
#pragma unroll
    for (int t = 0; t < kStripeShares; ++t) {
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) all[n][i] += partial[t][member()][n][i][lane()];
      }
    }
    finish_tile(stripe, all, bias);
  }

  const Product& p_;
  const DecodeLayout& layout_;
  Memory& shared_;
  std::uint32_t words_, scales_;  // this lane's first, in the ring's first stage
  RingPlace<Memory::kStages> place_;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    decode_mxfp4_bulk_kernel(const __grid_constant__ Product p,
                             const __grid_constant__ DecodeLayout layout) {
  using Memory = StripeMemory<C>;
  extern __shared__ __align__(128) std::uint8_t shared_bytes[];
  Memory& shared = *reinterpret_cast<Memory*>(shared_bytes);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < C::kTeams * Memory::kStages) {
    const int team = thread / Memory::kStages, stage = thread % Memory::kStages;
    ptx::mbarrier_init(shared.full[team][stage], 1);
    ptx::mbarrier_init(shared.empty[team][stage], kStripeTeamThreads);
    ptx::fence_mbarrier_init();
  }
  const bool grouped = p.groups.num_experts > 0;
  if (grouped && p.groups.dispatched == Dispatched::in_front) {
    ptx::grid_dependency_wait();
    ptx::grid_dependency_launch();
  }
  if (grouped) {
    read_column_groups(p, layout, shared.column_groups);
  } else {
    __syncthreads();
  }
  const int groups =
      grouped ? shared.column_groups.group_end[p.groups.num_experts - 1] : layout.plain_groups;
  const auto row_blocks = static_cast<int>(p.weights.row_blocks());
  const std::int64_t items = static_cast<std::int64_t>(groups) * row_blocks;
  const int begin = static_cast<int>(items * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(items * (blockIdx.x + 1) / gridDim.x);

  if (thread >= C::kWorkers) {
    const int lane = thread % 32, copier = (thread - C::kWorkers) / 32;
    const int team = C::kTeamsPerCopier == 1 ? copier : copier + lane * C::kCopiers;
    if (lane < C::kTeamsPerCopier && team < C::kTeams && begin < end) {
      StripeFeed<C> feed(p, shared, StripeWalk<C::kTeams>(team, begin, end, row_blocks));
      while (feed.has_more()) feed.load();
    }
    if (!grouped || p.groups.dispatched == Dispatched::earlier) ptx::grid_dependency_wait();
    return;
  }
  if (!grouped || p.groups.dispatched == Dispatched::earlier) {
    ptx::grid_dependency_wait();
    ptx::grid_dependency_launch();
  }
  if (begin >= end) return;
  std::uint8_t* const x_shared = shared_bytes + sizeof(Memory);
  const std::uint32_t x_address = ptx::shared_address(x_shared);
  StripeWalk<C::kTeams> walk(thread / kStripeTeamThreads, begin, end, row_blocks);
  Worker<C> worker(p, layout, shared);
  do {
    const DecodeItem run = locate(p, layout, shared.column_groups, walk.group);
    ptx::named_barrier_sync(kWorkersBarrier, C::kWorkers);
    stage_scaled_x<C::kWorkers>(p, layout, run, x_shared);
    if (thread == 0) shared.run = run;
    ptx::named_barrier_sync(kWorkersBarrier, C::kWorkers);
    if (C::kTokenTiles == 1 || run.num_columns <= 8) {
      worker.template compute<1>(walk, x_address);
    } else {
      worker.template compute<C::kTokenTiles>(walk, x_address);
    }
  } while (walk.next_run(row_blocks));
}

template <class C>
std::size_t shared_for(const Product& p) {
  const DecodeLayout layout = decode_layout(p, C::kTokenTiles);
  const std::int64_t columns = std::min<std::int64_t>(layout.columns_per_group, p.num_columns);
  return sizeof(StripeMemory<C>) + static_cast<std::size_t>(columns * layout.x_row_bytes);
}

/// At most; the device knows how many there are.
std::int64_t most_stripes(const Product& p, const DecodeLayout& layout) {
  const std::int64_t groups = p.groups.num_experts == 0
                                  ? layout.plain_groups
                                  : p.num_columns / layout.columns_per_group +
                                        std::min<std::int64_t>(p.groups.num_experts, p.num_columns);
  return groups * p.weights.row_blocks();
}

template <class C>
void launch_bulk(const Product& p, int num_sms, const Launch& how) {
  constexpr auto kernel = decode_mxfp4_bulk_kernel<C>;
  const std::size_t shared = shared_for<C>(p);
  allow_shared_memory<kernel>();
  const DecodeLayout layout = decode_layout(p, C::kTokenTiles);
  const auto blocks = std::min<std::int64_t>(most_stripes(p, layout), num_sms);
  launch(kernel,
         {.grid = dim3(static_cast<unsigned>(blocks)),
          .block = dim3(C::kThreads),
          .shared_bytes = shared},
         how, p, layout);
}

}  // namespace

bool decode_mxfp4_bulk_takes(const Product& product) {
  return product.weights.format == WeightFormat::mxfp4 && device_facts().has_bulk_copies &&
         shared_for<StripeConfig<1>>(product) <= device_facts().most_shared_bytes;
}

bool decode_mxfp4_bulk_fills(const Product& product, int num_sms) {
  return most_stripes(product, decode_layout(product, 1)) >= kManyStripesPerSm * num_sms;
}

void decode_mxfp4_bulk(const Product& product, std::int64_t most_columns, int num_sms,
                       const Launch& how) {
  check(product.groups.num_experts <= kMostExperts, "more experts than the product was made for");
  const bool two =
      most_columns > 8 && shared_for<StripeConfig<2>>(product) <= device_facts().most_shared_bytes;
  two ? launch_bulk<StripeConfig<2>>(product, num_sms, how)
      : launch_bulk<StripeConfig<1>>(product, num_sms, how);
}

}  // namespace gauntlet::kernels::cuda::inline product
