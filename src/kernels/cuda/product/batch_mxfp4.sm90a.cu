// Every block walks its share of all experts' rows, weighed by the experts' histogram. One thread
// feeds a ring of stages in shared memory; each warpgroup multiplies a stripe of 64 rows with the
// tokens that all of them share, in a tile as wide as the expert needs.
#include <cuda_runtime.h>

#include <algorithm>

#include "core/check.h"
#include "core/cuda/check.h"
#include "kernels/cuda/device_facts.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/product/batch_mxfp4.h"
#include "kernels/cuda/product/batch_schedule.h"
#include "kernels/cuda/product/prefill_epilogue.cuh"
#include "kernels/cuda/product/ring_place.cuh"
#include "kernels/cuda/product/wgmma_operands.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "ptx/bulk_copy.cuh"
#include "ptx/fence.cuh"
#include "ptx/grid_dependency.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/tensor_copy.cuh"
#include "ptx/wgmma.cuh"

namespace gauntlet::kernels::cuda::inline product {
namespace {

constexpr int kMaxExperts = kMostBatchExperts;
constexpr int kGroupThreads = 128;  // of a warpgroup
constexpr int kSharedBytes = 227 * 1024;

/// Columns of a stage, in blocks of 64: fewer barriers where tiles are narrow.
constexpr int stage_blocks(int width) { return width <= 64 ? 2 : 1; }
constexpr int kMostStageBlocks = 2;

/// Works whose description is kept: a consumer that writes results is a ring of stages behind.
constexpr int kWorks = 8;

template <BatchTile kTile, Epilogue kEpilogue_>
struct Config {
  static constexpr Epilogue kEpilogue = kEpilogue_;
  static constexpr int kMostWidth = kTile.most_width;
  static constexpr int kStripes = kTile.stripes;
  static constexpr int kConsumers = kStripes * kGroupThreads;
  static constexpr int kThreads = kConsumers + kGroupThreads;
  static constexpr int kProducers = kGroupThreads / 32;
  static_assert(kStripes <= kProducers);
  /// The producer gives registers to the consumers; what a thread starts with is a multiple of 8.
  static constexpr int kStartRegisters = 65536 / kThreads / 8 * 8;
  static constexpr int kProducerRegisters = kStripes == 3 ? 56 : 32;
  static constexpr int kConsumerRegisters =
      (kStartRegisters + (kStartRegisters - kProducerRegisters) / kStripes) / 8 * 8;
  static constexpr int kXBytes = 128 * kBlockCols * 2;
  static constexpr int kStripeBytes = kMostStageBlocks * kMxfp4BlockBytes;
  static constexpr int kStageBytes = kXBytes + kStripes * kStripeBytes;
  static constexpr int kRingBytes = kSharedBytes - 4 * kStripes * kStagingBytes -
                                    kMaxExperts * static_cast<int>(sizeof(BatchRun)) - 2048;
  static constexpr int kStages = kRingBytes / kStageBytes;
  static_assert(kXBytes % 1024 == 0, "the swizzle repeats every 1024 bytes");
  static_assert(kStages > 2 && kStages < kWorks);
};

template <class C>
struct Shared {
  alignas(1024) std::uint8_t x[C::kStages][C::kXBytes];
  alignas(128) std::uint8_t weights[C::kStages][C::kStripes][C::kStripeBytes];
  alignas(16) std::uint8_t staging[4 * C::kStripes][kStagingBytes];
  std::uint64_t full[C::kStages];
  std::uint64_t empty[C::kStages];
  BatchWork works[kWorks];
  BatchRun runs[kMaxExperts];
  int num_runs;
};

__device__ __forceinline__ void wait_for(std::uint64_t& barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait(barrier, parity)) {
  }
}

/// A tile's tokens are copied in pieces of 16, 32, 64 and 128, each by its map.
constexpr int kPieces = 4;
static_assert(kPrefillWidths[0] == 16 && kPrefillWidths[kPieces - 1] == 128);

/// By one warp: where this block's share of the experts' stripes lies.
template <class C>
__device__ void plan_runs(const Groups& groups, int stripes, Shared<C>& shared) {
  constexpr unsigned kAll = 0xFFFFFFFF;
  constexpr int kRounds = kMaxExperts / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int first[kRounds], slots[kRounds], start[kRounds];
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int e = r * 32 + lane;
    const bool exists = e < groups.num_experts;
    first[r] = exists ? groups.first_slot[e] : 0;
    slots[r] = exists ? groups.first_slot[e + 1] - first[r] : 0;
  }
  int total = 0;
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int cost = stripes * batch_stripe_cost(slots[r], C::kMostWidth);
    int end = cost;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const int before = __shfl_up_sync(kAll, end, offset);
      if (lane >= offset) end += before;
    }
    start[r] = total + end - cost;
    total += __shfl_sync(kAll, end, 31);
  }
  const auto boundary = [&](unsigned block) {
    return static_cast<std::int64_t>(total) * block / gridDim.x;
  };
  const std::int64_t from = boundary(blockIdx.x), to = boundary(blockIdx.x + 1);
  // Wide tiles come first, as the kernel's loops do.
  int runs = 0;
#pragma unroll 1
  for (int width = C::kMostWidth; width > 0; width -= kNarrowestTile) {
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
      const int cost = batch_stripe_cost(slots[r], C::kMostWidth);
      const int begin = batch_stripe_at(from, start[r], cost, stripes);
      const int end = batch_stripe_at(to, start[r], cost, stripes);
      const bool own = begin < end && batch_tiles(slots[r], C::kMostWidth).width == width;
      const unsigned some = __ballot_sync(kAll, own);
      if (own) {
        shared.runs[runs + __popc(some & ((1u << lane) - 1))] = {.expert = r * 32 + lane,
                                                                 .first_stripe = begin,
                                                                 .end_stripe = end,
                                                                 .first_slot = first[r],
                                                                 .slots = slots[r]};
      }
      runs += __popc(some);
    }
  }
  if (lane == 0) shared.num_runs = runs;
  __syncwarp();
}

/// One of the producing threads, each of a warp of its own: a single thread would take longer to
/// start all copies of a stage than the stage takes to multiply. It brings one stripe's weights and
/// its share of the tokens.
template <class C>
class Producer {
 public:
  __device__ Producer(Shared<C>& shared, const PrefillInput& input, const PrefillParams& p,
                      int member)
      : shared_(shared),
        input_(input),
        p_(p),
        member_(member),
        col_blocks_(static_cast<int>(p.weights.col_blocks())) {}

  /// Weights depend on nothing: those of the first stages are asked for before `tokens_ready`
  /// waits.
  __device__ __forceinline__ void load(const BatchWork& work, const auto& tokens_ready) {
    const int row_blocks = static_cast<int>(p_.weights.row_blocks());
    weights_ = p_.weights.data + static_cast<std::int64_t>(work.tokens.expert * row_blocks +
                                                           work.tokens.row_tile + member_) *
                                     col_blocks_ * kMxfp4BlockBytes;
    const int blocks = stage_blocks(work.tokens.width);
    const bool has_stripe = member_ < work.stripes;
    int started = 0;
    if (works_ == 0) {
      describe(work);
      started = min((col_blocks_ + blocks - 1) / blocks, C::kStages);
      for (int k = 0; k < started; ++k) load_weights(work, has_stripe, k * blocks, blocks, k);
      tokens_ready();
    }
    for (int column = 0; column < col_blocks_; column += blocks) {
      if (--started < 0) {
        wait_for(shared_.empty[place_.stage], place_.parity ^ 1);
        if (column == 0) describe(work);
        load_weights(work, has_stripe, column, blocks, place_.stage);
      }
      load_tokens(work, column, blocks, place_.stage);
      place_.advance();
    }
  }

  /// A stage of nothing follows the last.
  __device__ __forceinline__ void end() {
    wait_for(shared_.empty[place_.stage], place_.parity ^ 1);
    describe({});
    ptx::mbarrier_arrive(shared_.full[place_.stage]);
  }

 private:
  __device__ __forceinline__ void describe(const BatchWork& work) {
    if (member_ == 0) shared_.works[works_ % kWorks] = work;
    ++works_;
  }
  /// Of a stage's blocks, that whose tokens this thread brings; the last threads do, as groups of
  /// stripes may be smaller.
  __device__ __forceinline__ int own_block() const { return C::kProducers - 1 - member_; }

  __device__ __forceinline__ void load_weights(const BatchWork& work, bool has_stripe, int column,
                                               int most, int stage) {
    const int blocks = min(most, col_blocks_ - column);
    const int bytes = has_stripe ? blocks * kMxfp4BlockBytes : 0;
    const int x_bytes = own_block() < blocks ? work.tokens.width * kBlockCols * 2 : 0;
    std::uint64_t& full = shared_.full[stage];
    ptx::mbarrier_arrive_expect_tx(full, bytes + x_bytes);
    if (has_stripe) {
      ptx::bulk_load(shared_.weights[stage][member_], weights_ + column * kMxfp4BlockBytes, bytes,
                     full);
    }
  }

  __device__ __forceinline__ void load_tokens(const BatchWork& work, int column, int most,
                                              int stage) {
    const int block = own_block();
    if (block >= min(most, col_blocks_ - column)) return;
    const int width = work.tokens.width;
    std::uint8_t* to = shared_.x[stage] + block * width * kBlockCols * 2;
    int row = work.tokens.first_slot;
#pragma unroll
    for (int i = kPieces - 1; i >= 0; --i) {
      const int piece = 16 << i;
      if ((width & piece) == 0) continue;
      ptx::tensor_load_2d(to, input_.maps[i], {.column = (column + block) * kBlockCols, .row = row},
                          shared_.full[stage]);
      row += piece;
      to += piece * kBlockCols * 2;
    }
  }

  Shared<C>& shared_;
  const PrefillInput& input_;
  const PrefillParams& p_;
  const int member_;
  const int col_blocks_;
  const std::uint8_t* weights_ = nullptr;  // of this thread's stripe
  int works_ = 0;
  RingPlace<C::kStages> place_;
};

/// A consuming warpgroup's work.
template <class C>
class Consumer {
 public:
  __device__ Consumer(Shared<C>& shared, const PrefillParams& p) : shared_(shared), p_(p) {}

  /// Everything that comes in tiles of this width.
  template <int kWidth>
  __device__ __forceinline__ void compute() {
    for (;; ++works_) {
      wait_for(shared_.full[place_.stage], place_.parity);
      const BatchWork& work = shared_.works[works_ % kWorks];
      if (work.tokens.width != kWidth) return;
      const int group = static_cast<int>(threadIdx.x) / kGroupThreads;
      if (group >= work.stripes) {
        pass(stage_blocks(kWidth));
        continue;
      }
      float sums[kWidth / 2] = {};
      accumulate<kWidth>(group, sums);
      const int warp = static_cast<int>(threadIdx.x) / 32;
      PrefillOutput<kWidth>(p_, work.tokens,
                            (work.tokens.row_tile + group) * kBlockRows + warp % 4 * kTileRows,
                            shared_.staging[warp])
          .template write_as<C::kEpilogue>(sums);
    }
  }

 private:
  __device__ __forceinline__ int col_blocks() const {
    return static_cast<int>(p_.weights.col_blocks());
  }
  __device__ __forceinline__ void release(int stage) {
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(shared_.empty[stage]);
  }
  __device__ __forceinline__ void release_before() {
    release(place_.stage == 0 ? C::kStages - 1 : place_.stage - 1);
  }

  /// Stages go by without rows for this warpgroup.
  __device__ void pass(int blocks) {
    for (int c = 0; c < col_blocks(); c += blocks) {
      wait_for(shared_.full[place_.stage], place_.parity);
      release(place_.stage);
      place_.advance();
    }
  }

  /// In units of a block of columns, or of half a block where sums take the registers: two units
  /// to a stage.
  template <int kWidth>
  __device__ __forceinline__ void accumulate(int group, float (&sums)[kWidth / 2]) {
    constexpr bool kWhole = stage_blocks(kWidth) == 2;
    constexpr int kUnitSteps = kWhole ? kSteps : kHalfSteps;
    std::uint32_t a[2][kUnitSteps][4];

    // Registers a[kOdd] are free once the unit before the newest has finished; the newest runs
    // while they are loaded and dequantized.
    const auto unit = [&]<int kOdd> {
      if constexpr (kOdd == 0) wait_for(shared_.full[place_.stage], place_.parity);
      ptx::wgmma_wait_group<1>();
      const std::uint8_t* const weights = shared_.weights[place_.stage][group];
      const std::uint8_t* x = shared_.x[place_.stage];
      if constexpr (kWhole) {
        load_operands<WeightFormat::mxfp4>(weights + kOdd * kMxfp4BlockBytes, a[kOdd]);
        x += kOdd * kWidth * kBlockCols * 2;
      } else {
        load_half_operands(weights, kOdd, a[kOdd]);
        x += kOdd * kBlockCols;
      }
      const std::uint64_t descriptor = ptx::wgmma_descriptor_128b(x);
      ptx::wgmma_fence();
#pragma unroll
      for (int s = 0; s < kUnitSteps; ++s) {
        multiply_step<kWidth>(sums, a[kOdd][s], descriptor + 2 * s);
      }
      ptx::wgmma_commit_group();
    };

    const int units = kWhole ? col_blocks() : 2 * col_blocks();
    int u = 0;
#pragma unroll 1
    for (; u + 1 < units; u += 2) {
      unit.template operator()<0>();
      unit.template operator()<1>();
      if (u > 0) release_before();
      place_.advance();
    }
    if (u < units) {
      unit.template operator()<0>();
      ptx::wgmma_wait_group<0>();
      if (u > 0) release_before();
      release(place_.stage);
      place_.advance();
    } else {
      ptx::wgmma_wait_group<0>();
      release_before();
    }
  }

  Shared<C>& shared_;
  const PrefillParams& p_;
  int works_ = 0;
  RingPlace<C::kStages> place_;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    batch_mxfp4_kernel(const __grid_constant__ PrefillInput input,
                       const __grid_constant__ PrefillParams p) {
  extern __shared__ __align__(1024) std::uint8_t bytes[];
  auto& shared = *reinterpret_cast<Shared<C>*>(bytes);
  const int thread = static_cast<int>(threadIdx.x);
  const bool earlier = p.groups.dispatched == Dispatched::earlier;
  if (thread == C::kConsumers) {
    for (int stage = 0; stage < C::kStages; ++stage) {
      ptx::mbarrier_init(shared.full[stage], C::kProducers);
      ptx::mbarrier_init(shared.empty[stage], 4 * C::kStripes);
    }
    ptx::fence_mbarrier_init();
  }
  const auto wait_in_front = [] {
    ptx::grid_dependency_wait();
    ptx::grid_dependency_launch();
  };
  if (!earlier) wait_in_front();
  if (thread / 32 == C::kConsumers / 32) {
    plan_runs(p.groups, static_cast<int>(p.weights.row_blocks()), shared);
  }
  __syncthreads();

  if (thread >= C::kConsumers) {
    ptx::setmaxnreg_decrease<C::kProducerRegisters>();
    if (thread % 32 != 0) return;
    Producer<C> producer(shared, input, p, (thread - C::kConsumers) / 32);
    const auto tokens_ready = [&] {
      if (earlier) wait_in_front();
    };
    BatchWalk walk{.runs = shared.runs,
                   .num_runs = shared.num_runs,
                   .most_stripes = C::kStripes,
                   .most_width = C::kMostWidth};
    BatchWork work;
    while (walk.next(work)) producer.load(work, tokens_ready);
    producer.end();
    return;
  }
  ptx::setmaxnreg_increase<C::kConsumerRegisters>();
  if (earlier) wait_in_front();
  Consumer<C> consumer(shared, p);
  if constexpr (C::kMostWidth >= 128) consumer.template compute<128>();
  if constexpr (C::kMostWidth >= 96) consumer.template compute<96>();
  consumer.template compute<64>();
  consumer.template compute<48>();
  consumer.template compute<32>();
  consumer.template compute<16>();
}

template <class C>
void run(const PrefillParams& p, const PrefillInput& input, const Launch& how) {
  static_assert(sizeof(Shared<C>) <= kSharedBytes);
  constexpr auto kernel = batch_mxfp4_kernel<C>;
  allow_shared_memory<kernel>();
  const std::int64_t most_runs = std::min<std::int64_t>(p.groups.num_experts, p.num_columns);
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(
      device_facts().num_sms, std::max<std::int64_t>(1, most_runs * p.weights.row_blocks())));
  launch(kernel, {.grid = {blocks}, .block = {C::kThreads}, .shared_bytes = sizeof(Shared<C>)}, how,
         input, p);
}

}  // namespace

BatchTile choose_batch_tile(std::int64_t num_columns, int num_experts) {
  constexpr std::int64_t kNarrowSlotsPerExpert = 48;
  return num_columns <= kNarrowSlotsPerExpert * num_experts ? kNarrowBatchTile : kWideBatchTile;
}

bool batch_mxfp4_takes(const Product& product) {
  const Epilogue end = product.epilogue;
  return product.weights.format == WeightFormat::mxfp4 && product.groups.num_experts > 0 &&
         product.groups.num_experts <= kMaxExperts && device_facts().has_bulk_copies &&
         (end == Epilogue::swiglu_bf16 || end == Epilogue::weighted_f32 ||
          end == Epilogue::store_f32);
}

void batch_mxfp4(const Product& product, const PrefillInput& input, const BatchTile& tile,
                 const Launch& how) {
  check(batch_mxfp4_takes(product), "batch product: MXFP4 experts on Hopper, at most 128");
  check(std::ranges::find(kBatchTiles, tile) != kBatchTiles.end(), "batch product: no such tile");
  const PrefillParams p{.weights = product.weights,
                        .num_columns = static_cast<int>(product.num_columns),
                        .row_tiles = 0,
                        .unit = kMxfp4Unit,
                        .swiglu_limit = product.swiglu_limit,
                        .bias = product.bias,
                        .epilogue = product.epilogue,
                        .out = product.out,
                        .out_stride = product.out_stride,
                        .groups = product.groups};
  const auto with = [&]<Epilogue kEpilogue> {
    if (tile == kWideBatchTile) return run<Config<kWideBatchTile, kEpilogue>>(p, input, how);
    run<Config<kNarrowBatchTile, kEpilogue>>(p, input, how);
  };
  if (product.epilogue == Epilogue::swiglu_bf16) {
    with.template operator()<Epilogue::swiglu_bf16>();
  } else if (product.epilogue == Epilogue::weighted_f32) {
    with.template operator()<Epilogue::weighted_f32>();
  } else {
    with.template operator()<Epilogue::store_f32>();
  }
}

}  // namespace gauntlet::kernels::cuda::inline product
