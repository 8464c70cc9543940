// MXFP4 products of few tokens are bound by instructions, so the warps that multiply do nothing
// else: one warp copies stripes of 64 rows into rings. A team of four warps, each with a tile of
// its rows, takes a stripe of its own while there are enough for all; the last few all teams share.
#include <algorithm>

#include "kernels/cuda/decode_fp4.cuh"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/fp4_sums.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/skinny_schedule.cuh"
#include "kernels/cuda/stripe_product.h"
#include "ptx/bulk_copy.cuh"
#include "ptx/fence.cuh"
#include "ptx/grid_dependency.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mma.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/nanosleep.cuh"
#include "ptx/shared_load.cuh"

namespace gauntlet::kernels::cuda {
namespace {

constexpr int kTeamWarps = kTilesPerBlock;
constexpr int kTeamThreads = kTeamWarps * 32;
constexpr int kShares = 5;  // of a stripe
constexpr int kWorkersBarrier = 1;
constexpr int kStageBlocks = 3;  // of 64 columns
constexpr int kStageBytes = kStageBlocks * kMxfp4BlockBytes;
constexpr std::int64_t kManyStripesPerSm = 4;
/// Far less than a stage takes to be multiplied.
constexpr unsigned kPollNanoseconds = 64;

/// How a block is made up: tokens of two tiles leave registers for fewer warps.
template <int kTiles>
struct Config {
  static constexpr int kTokenTiles = kTiles;
  static constexpr int kTeams = kTiles == 1 ? 7 : 5;
  static constexpr int kWorkers = kTeams * kTeamThreads;
  static constexpr int kThreads = kWorkers + 32;  // the last warp copies
};

/// What lies in shared memory in front of x.
template <class C>
struct Shared {
  static constexpr int kTokenTiles = C::kTokenTiles;
  static constexpr int kStages = 3;
  /// Two save a barrier; of two token tiles they would take a stage's room.
  static constexpr int kPartials = kTokenTiles == 1 ? 2 : 1;
  alignas(128) std::uint8_t rings[C::kTeams][kStages][kStageBytes];
  float partial[kPartials][kShares][kTeamWarps][kTokenTiles][4][32];
  std::uint64_t full[C::kTeams][kStages];
  std::uint64_t empty[C::kTeams][kStages];
  Dealing dealing;
  SkinnyItem run;  // the columns being multiplied
};

/// A place in a ring and the parity of its barriers there.
template <int kStages>
struct RingPlace {
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

/// Shares of a stripe are whole stages, one after the other, the last ones perhaps shorter. A sum
/// is made of the sums of shares, added in their order, whether a team makes them all or one each.
__device__ __forceinline__ int share_blocks(int col_blocks) {
  const int stages = (col_blocks + kStageBlocks - 1) / kStageBlocks;
  return (stages + kShares - 1) / kShares * kStageBlocks;
}

/// Goes over the stripes of one team: whole ones, then the few that teams share, in every run of
/// stripes with the same columns.
template <int kTeams>
struct Walk {
  int team;
  int group;  // of columns
  int stripe;
  int whole_end;  // stripes before this one are taken whole
  int run_end;
  int end;  // of the block, counted through all groups

  __device__ __forceinline__ Walk(int own, int begin, int block_end, int row_blocks)
      : team(own), group(begin / row_blocks), end(block_end) {
    enter(begin - group * row_blocks, row_blocks);
  }
  __device__ __forceinline__ bool in_run() const { return stripe < run_end; }
  __device__ __forceinline__ bool whole() const { return stripe < whole_end; }
  __device__ __forceinline__ void advance() {
    if (!whole()) {
      ++stripe;
    } else if ((stripe += kTeams) >= whole_end) {
      stripe = whole_end;
    }
  }
  __device__ __forceinline__ bool next_run(int row_blocks) {
    if ((group + 1) * row_blocks >= end) return false;
    ++group;
    enter(0, row_blocks);
    return true;
  }

 private:
  __device__ __forceinline__ void enter(int first, int row_blocks) {
    run_end = min(row_blocks, end - group * row_blocks);
    const int left = (run_end - first) % kTeams;
    whole_end = left < kShares ? run_end - left : run_end;
    stripe = min(first + team, whole_end);
  }
};

/// The copies of one team, by one thread: what its warps will want, in that order.
template <class C>
class Feed {
 public:
  using Memory = Shared<C>;

  __device__ __forceinline__ Feed(const Product& p, Memory& shared, const Walk<C::kTeams>& walk)
      : p_(p),
        shared_(shared),
        walk_(walk),
        row_blocks_(static_cast<int>(p.weights.row_blocks())),
        col_blocks_(static_cast<int>(p.weights.col_blocks())) {
    enter_run();
    enter_stripe();
  }

  __device__ __forceinline__ bool has_more() const { return more_; }

  /// The next stage's copy, if its place is free.
  __device__ __forceinline__ bool load() {
    if (!ptx::mbarrier_test_wait(shared_.empty[walk_.team][place_.stage], place_.parity ^ 1)) {
      return false;
    }
    const int blocks = min(kStageBlocks, end_ - block_);
    std::uint64_t& full = shared_.full[walk_.team][place_.stage];
    ptx::mbarrier_arrive_expect_tx(full, blocks * kMxfp4BlockBytes);
    ptx::bulk_load(shared_.rings[walk_.team][place_.stage],
                   p_.weights.data + (first_block_ + block_) * kMxfp4BlockBytes,
                   blocks * kMxfp4BlockBytes, full);
    place_.advance();
    block_ += kStageBlocks;
    if (block_ >= end_) {
      walk_.advance();
      enter_run();
      enter_stripe();
    }
    return true;
  }

 private:
  __device__ __forceinline__ int share_begin() const {
    return walk_.team * share_blocks(col_blocks_);
  }
  __device__ __forceinline__ bool has_share() const {
    return walk_.team < kShares && share_begin() < col_blocks_;
  }
  __device__ __forceinline__ bool has_stripe() const {
    return walk_.in_run() && (walk_.whole() || has_share());
  }
  /// Goes on to a run in which this team has a stripe.
  __device__ __forceinline__ void enter_run() {
    while (more_ && !has_stripe()) more_ = walk_.next_run(row_blocks_);
  }
  __device__ __forceinline__ void enter_stripe() {
    if (!more_) return;
    while (p_.groups.num_experts > 0 && shared_.dealing.group_end[expert_] <= walk_.group) {
      ++expert_;
    }
    const bool whole = walk_.whole();
    block_ = whole ? 0 : share_begin();
    end_ = whole ? col_blocks_ : min(col_blocks_, block_ + share_blocks(col_blocks_));
    first_block_ = std::int64_t{expert_ * row_blocks_ + walk_.stripe} * col_blocks_;
  }

  const Product& p_;
  Memory& shared_;
  Walk<C::kTeams> walk_;
  const int row_blocks_;
  const int col_blocks_;
  RingPlace<Memory::kStages> place_;
  bool more_ = true;
  int expert_ = 0;
  int block_ = 0, end_ = 0;       // the stage's first, and the last stage's end
  std::int64_t first_block_ = 0;  // of the stripe
};

/// With two tiles there are as many sums as weights: those are scaled.
__device__ __forceinline__ void add_products(const uint4& steps, std::uint32_t factors,
                                             const std::uint32_t (&x_row)[2], float (&sums)[2][4]) {
  const std::uint32_t step[4] = {steps.x, steps.y, steps.z, steps.w};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t upper = scale_pair(factors, half), lower = scale_pair(factors, 2 + half);
    std::uint32_t a[2][4];
    decode_fp4(step[2 * half], upper, lower, a[0]);
    decode_fp4(step[2 * half + 1], upper, lower, a[1]);
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
  for (int i = 0; i < kStageBlocks; ++i) {
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
  using Memory = Shared<C>;

  __device__ __forceinline__ Worker(const Product& p, const SkinnyLayout& layout, Memory& shared)
      : p_(p), layout_(layout), shared_(shared) {
    const std::uint32_t ring = ptx::shared_address(shared.rings[team()]);
    words_ = ring + member() * kMxfp4TileBytes + lane() * 16;
    scales_ =
        ring + kTilesPerBlock * kMxfp4TileBytes + member() * kMxfp4ScaleBytes + lane() / 4 * 4;
  }

  /// A run with columns for kTiles of the token tiles.
  template <int kTiles>
  __device__ __forceinline__ void compute(Walk<C::kTeams>& walk, std::uint32_t x_address) {
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
      if (team() < kShares) sum_share(first, min(layout_.col_blocks, first + share), x, sums);
      if (kTiles > 1) bias = bias_for(walk.stripe);
      join(walk.stripe, sums, bias);
    }
  }

 private:
  static __device__ __forceinline__ int lane() { return threadIdx.x % 32; }
  static __device__ __forceinline__ int member() { return threadIdx.x / 32 % kTeamWarps; }
  static __device__ __forceinline__ int team() { return threadIdx.x / kTeamThreads; }
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
    for (int left = end - first; left > 0; left -= kStageBlocks) {
      while (!ptx::mbarrier_try_wait(shared_.full[team()][place_.stage], place_.parity)) {
      }
      const std::uint32_t stage = place_.stage * kStageBytes;
      multiply(words_ + stage, scales_ + stage, left, x_row, sums);
      __syncwarp();
      if (lane() == 0) ptx::mbarrier_arrive(shared_.empty[team()][place_.stage]);
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
    auto& partial = shared_.partial[joined_ % Memory::kPartials];
    if constexpr (Memory::kPartials == 1) ptx::named_barrier_sync(kWorkersBarrier, C::kWorkers);
#pragma unroll
    for (int n = 0; n < kTiles && team() < kShares; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) partial[team()][member()][n][i][lane()] = sums[n][i];
    }
    ptx::named_barrier_sync(kWorkersBarrier, C::kWorkers);
    if (joined_++ % C::kTeams != team()) return;
    float all[kTiles][4] = {};
#pragma unroll
    for (int t = 0; t < kShares; ++t) {
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) all[n][i] += partial[t][member()][n][i][lane()];
      }
    }
    finish_tile(stripe, all, bias);
  }

  const Product& p_;
  const SkinnyLayout& layout_;
  Memory& shared_;
  std::uint32_t words_, scales_;  // this lane's first, in the ring's first stage
  RingPlace<Memory::kStages> place_;
  int joined_ = 0;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    stripe_kernel(const __grid_constant__ Product p, const __grid_constant__ SkinnyLayout layout) {
  using Memory = Shared<C>;
  extern __shared__ __align__(128) std::uint8_t shared_bytes[];
  Memory& shared = *reinterpret_cast<Memory*>(shared_bytes);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < C::kTeams * Memory::kStages) {
    const int team = thread / Memory::kStages, stage = thread % Memory::kStages;
    ptx::mbarrier_init(shared.full[team][stage], 1);
    ptx::mbarrier_init(shared.empty[team][stage], kTeamWarps);
    ptx::fence_mbarrier_init();
  }
  const bool grouped = p.groups.num_experts > 0;
  if (grouped && p.groups.dealt == Dealt::in_front) {
    ptx::grid_dependency_wait();
    ptx::grid_dependency_launch();
  }
  if (grouped) {
    read_dealing(p, layout, shared.dealing);
  } else {
    __syncthreads();
  }
  const int groups =
      grouped ? shared.dealing.group_end[p.groups.num_experts - 1] : layout.plain_groups;
  const auto row_blocks = static_cast<int>(p.weights.row_blocks());
  const std::int64_t items = static_cast<std::int64_t>(groups) * row_blocks;
  const int begin = static_cast<int>(items * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(items * (blockIdx.x + 1) / gridDim.x);

  if (thread >= C::kWorkers) {
    const int team = thread - C::kWorkers;
    if (team < C::kTeams && begin < end) {
      Feed<C> feed(p, shared, Walk<C::kTeams>(team, begin, end, row_blocks));
      while (feed.has_more()) {
        if (!feed.load()) ptx::nanosleep(kPollNanoseconds);
      }
    }
    if (!grouped || p.groups.dealt == Dealt::earlier) ptx::grid_dependency_wait();
    return;
  }
  if (!grouped || p.groups.dealt == Dealt::earlier) {
    ptx::grid_dependency_wait();
    ptx::grid_dependency_launch();
  }
  if (begin >= end) return;
  std::uint8_t* const x_shared = shared_bytes + sizeof(Memory);
  const std::uint32_t x_address = ptx::shared_address(x_shared);
  Walk<C::kTeams> walk(thread / kTeamThreads, begin, end, row_blocks);
  Worker<C> worker(p, layout, shared);
  do {
    const SkinnyItem run = locate(p, layout, shared.dealing, walk.group);
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
  const SkinnyLayout layout = skinny_layout(p, C::kTokenTiles);
  const std::int64_t columns = std::min<std::int64_t>(layout.columns_per_group, p.num_columns);
  return sizeof(Shared<C>) + static_cast<std::size_t>(columns * layout.x_row_bytes);
}

/// At most; the device knows how many there are.
std::int64_t most_stripes(const Product& p, const SkinnyLayout& layout) {
  const std::int64_t groups = p.groups.num_experts == 0
                                  ? layout.plain_groups
                                  : p.num_columns / layout.columns_per_group +
                                        std::min<std::int64_t>(p.groups.num_experts, p.num_columns);
  return groups * p.weights.row_blocks();
}

template <class C>
void launch_stripes(const Product& p, int num_sms, const Launch& how) {
  const auto kernel = stripe_kernel<C>;
  const std::size_t shared = shared_for<C>(p);
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared)));
  const SkinnyLayout layout = skinny_layout(p, C::kTokenTiles);
  const auto blocks = std::min<std::int64_t>(most_stripes(p, layout), num_sms);
  launch(kernel,
         {.grid = dim3(static_cast<unsigned>(blocks)),
          .block = dim3(C::kThreads),
          .shared_bytes = shared},
         how, p, layout);
}

}  // namespace

bool stripes_take(const Product& product) {
  if (product.weights.format != WeightFormat::mxfp4) return false;
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, stripe_kernel<Config<1>>) != cudaSuccess) {
    cudaGetLastError();  // it must not surface at the next call
    return false;
  }
  return shared_for<Config<1>>(product) <= most_shared_bytes();
}

bool stripes_are_many(const Product& product, int num_sms) {
  return most_stripes(product, skinny_layout(product, 1)) >= kManyStripesPerSm * num_sms;
}

void stripe_product(const Product& product, std::int64_t most_columns, int num_sms,
                    const Launch& how) {
  check(product.groups.num_experts <= kMostExperts, "more experts than the product was made for");
  const bool two = most_columns > 8 && shared_for<Config<2>>(product) <= most_shared_bytes();
  two ? launch_stripes<Config<2>>(product, num_sms, how)
      : launch_stripes<Config<1>>(product, num_sms, how);
}

}  // namespace gauntlet::kernels::cuda
