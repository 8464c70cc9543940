// One warp feeds a ring of stages in shared memory (weights by bulk copies, tokens by tensor
// copies); each warpgroup multiplies its 64 rows with the tokens, weights from registers.
#include <cuda_runtime.h>

#include <algorithm>

#include "core/check.h"
#include "core/cuda/check.h"
#include "core/cuda/tensor_map.h"
#include "kernels/cuda/device_facts.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/product/prefill_epilogue.cuh"
#include "kernels/cuda/product/prefill_product.h"
#include "kernels/cuda/product/prefill_schedule.h"
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

constexpr int kMaxExperts = 128;
constexpr int kGroupThreads = 128;  // of a warpgroup
constexpr int kSharedBytes = 227 * 1024;

template <WeightFormat kFormat_, int kTokens_, int kConsumers_>
struct Config {
  static constexpr WeightFormat kFormat = kFormat_;
  static constexpr int kTokens = kTokens_;
  static constexpr int kConsumers = kConsumers_;
  static constexpr int kThreads = (kConsumers + 1) * kGroupThreads;
  /// The producer gives registers to the consumers; what a thread starts with is a multiple of 8.
  static constexpr int kStartRegisters = std::min(65536 / kThreads / 8 * 8, 248);
  static constexpr int kProducerRegisters = 56;
  static constexpr int kConsumerRegisters = std::min(
      248, (kStartRegisters + (kStartRegisters - kProducerRegisters) / kConsumers) / 8 * 8);
  static constexpr int kBlockBytes =
      kFormat == WeightFormat::bf16 ? kBf16BlockBytes : kMxfp4BlockBytes;
  /// Blocks of 64 columns in a stage.
  static constexpr int kStageBlocks = kTokens <= 64 ? 2 : 1;
  static constexpr int kXBytes = kTokens * kBlockCols * 2;  // of a block
  static constexpr int kStageBytes = kStageBlocks * (kXBytes + kConsumers * kBlockBytes);
  static constexpr int kRingBytes = kSharedBytes - 4 * kConsumers * kStagingBytes - 2048;
  static constexpr int kStages = std::min(32, kRingBytes / kStageBytes);
  /// Stages a consumer keeps while its newest products run.
  static constexpr int kHeld = kStageBlocks == 1 ? 2 : 1;
  static_assert(kTokens % kNarrowestTile == 0 && kTokens <= 256);
  static_assert(kXBytes % 1024 == 0, "the swizzle repeats every 1024 bytes");
  static_assert(kStages > kHeld + 1);
};

template <class C>
struct Shared {
  alignas(1024) std::uint8_t x[C::kStages][C::kStageBlocks][C::kXBytes];
  alignas(128) std::uint8_t weights[C::kStages][C::kConsumers][C::kStageBlocks * C::kBlockBytes];
  alignas(16) std::uint8_t staging[4 * C::kConsumers][kStagingBytes];
  std::uint64_t full[C::kStages];
  std::uint64_t empty[C::kStages];
  std::int32_t first_slot[kMaxExperts + 1];
};

__device__ __forceinline__ void wait_for(std::uint64_t& barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait(barrier, parity)) {
  }
}

constexpr int map_of(int width) {
  int index = 0;
  while (kPrefillWidths[index] != width) ++index;
  return index;
}

/// The producing thread's work.
template <class C>
class Producer {
 public:
  __device__ Producer(Shared<C>& shared, const PrefillInput& input, const PrefillParams& p)
      : shared_(shared),
        input_(input),
        p_(p),
        col_blocks_(static_cast<int>(p.weights.col_blocks())),
        num_stages_((col_blocks_ + C::kStageBlocks - 1) / C::kStageBlocks) {}

  __device__ void prepare() const { ptx::prefetch_tensor_map(input_.maps[map_of(C::kTokens)]); }

  /// The weights of the first tile's first stages, which depend on nothing.
  __device__ void start_weights(const PrefillWork& work) {
    started_ = min(num_stages_, C::kStages);
    for (int k = 0; k < started_; ++k) load_weights(work, k, k);
  }

  __device__ void load(const PrefillWork& work) {
    for (int k = 0; k < num_stages_; ++k) {
      if (started_ > 0) {
        --started_;
      } else {
        wait_for(shared_.empty[place_.stage], place_.parity ^ 1);
        load_weights(work, k, place_.stage);
      }
      load_tokens(work, k, place_.stage);
      place_.advance();
    }
  }

 private:
  __device__ int blocks_in(int k) const {
    return min(C::kStageBlocks, col_blocks_ - k * C::kStageBlocks);
  }

  __device__ void load_weights(const PrefillWork& work, int k, int stage) {
    const int blocks = blocks_in(k);
    const auto row_blocks = static_cast<int>(p_.weights.row_blocks());
    const int first_row_block = work.row_tile * C::kConsumers;
    const int rows = min(C::kConsumers, row_blocks - first_row_block);
    ptx::mbarrier_arrive_expect_tx(shared_.full[stage],
                                   blocks * (rows * C::kBlockBytes + work.width * kBlockCols * 2));
    const std::int64_t first_block =
        (std::int64_t{work.expert} * row_blocks + first_row_block) * col_blocks_ +
        k * C::kStageBlocks;
    for (int r = 0; r < rows; ++r) {
      ptx::bulk_load(
          shared_.weights[stage][r],
          p_.weights.data + (first_block + std::int64_t{r} * col_blocks_) * C::kBlockBytes,
          blocks * C::kBlockBytes, shared_.full[stage]);
    }
  }

  __device__ void load_tokens(const PrefillWork& work, int k, int stage) {
    const int map = work.width == C::kTokens       ? map_of(C::kTokens)
                    : work.width == C::kTokens / 2 ? map_of(std::max(16, C::kTokens / 2))
                                                   : map_of(std::max(16, C::kTokens / 4));
    for (int b = 0; b < blocks_in(k); ++b) {
      ptx::tensor_load_2d(
          shared_.x[stage][b], input_.maps[map],
          {.column = (k * C::kStageBlocks + b) * kBlockCols, .row = work.first_slot},
          shared_.full[stage]);
    }
  }

  Shared<C>& shared_;
  const PrefillInput& input_;
  const PrefillParams& p_;
  const int col_blocks_;
  const int num_stages_;
  int started_ = 0;  // stages whose weights are on their way
  RingPlace<C::kStages> place_;
};

/// A consuming warpgroup's work.
template <class C>
class Consumer {
 public:
  __device__ Consumer(Shared<C>& shared, const PrefillParams& p)
      : shared_(shared), p_(p), col_blocks_(static_cast<int>(p.weights.col_blocks())) {}

  template <int kWidth>
  __device__ __forceinline__ void compute(const PrefillWork& work) {
    const int row_block = work.row_tile * C::kConsumers + group_;
    if (row_block >= p_.weights.row_blocks()) return pass();
    float sums[kWidth / 2] = {};
    accumulate<kWidth>(sums);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    PrefillOutput<kWidth>(p_, work, row_block * kBlockRows + warp % 4 * kTileRows,
                          shared_.staging[warp])
        .write(sums);
  }

 private:
  /// Gives back the oldest stage this warp holds.
  __device__ __forceinline__ void release() {
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(shared_.empty[oldest_.stage]);
    oldest_.advance();
    --held_;
  }

  /// Stages go by without rows for this warpgroup.
  __device__ void pass() {
    for (int c = 0; c < col_blocks_; c += C::kStageBlocks) {
      wait_for(shared_.full[newest_.stage], newest_.parity);
      newest_.advance();
      ++held_;
      release();
    }
  }

  template <int kWidth>
  __device__ __forceinline__ void accumulate(float (&sums)[kWidth / 2]) {
    Operands a[2];

    // Registers a[kOdd] are free once the group before the newest has finished; the newest runs
    // while they are loaded and dequantized.
    const auto step = [&]<int kOdd> {
      constexpr bool kOpens = C::kStageBlocks == 1 || kOdd == 0;
      constexpr bool kCloses = C::kStageBlocks == 1 || kOdd == 1;
      constexpr int kInStage = C::kStageBlocks == 1 ? 0 : kOdd;
      if constexpr (kOpens) {
        wait_for(shared_.full[newest_.stage], newest_.parity);
        ++held_;
      }
      ptx::wgmma_wait_group<1>();
      if (kCloses && held_ > C::kHeld) release();
      load_operands<C::kFormat>(shared_.weights[newest_.stage][group_] + kInStage * C::kBlockBytes,
                                a[kOdd]);
      const std::uint64_t x = ptx::wgmma_descriptor_128b(shared_.x[newest_.stage][kInStage]);
      ptx::wgmma_fence();
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        multiply_step<kWidth>(sums, a[kOdd][s], x + 2 * s);
      }
      ptx::wgmma_commit_group();
      if constexpr (kCloses) newest_.advance();
    };

    int c = 0;
    for (; c + 1 < col_blocks_; c += 2) {
      step.template operator()<0>();
      step.template operator()<1>();
    }
    if (c < col_blocks_) {
      step.template operator()<0>();
      if constexpr (C::kStageBlocks == 2) newest_.advance();
    }
    ptx::wgmma_wait_group<0>();
    while (held_ > 0) release();
  }

  Shared<C>& shared_;
  const PrefillParams& p_;
  const int col_blocks_;
  const int group_ = static_cast<int>(threadIdx.x) / kGroupThreads;
  int held_ = 0;
  RingPlace<C::kStages> newest_;
  RingPlace<C::kStages> oldest_;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    prefill_kernel(const __grid_constant__ PrefillInput input,
                   const __grid_constant__ PrefillParams p) {
  extern __shared__ __align__(1024) std::uint8_t bytes[];
  auto& shared = *reinterpret_cast<Shared<C>*>(bytes);
  const bool plain = p.groups.num_experts == 0;
  const int num_experts = plain ? 1 : p.groups.num_experts;
  constexpr int kProducer = C::kConsumers * kGroupThreads;  // its first thread
  const int thread = static_cast<int>(threadIdx.x);

  if (thread == 0) {
    for (int stage = 0; stage < C::kStages; ++stage) {
      ptx::mbarrier_init(shared.full[stage], 1);
      ptx::mbarrier_init(shared.empty[stage], 4 * C::kConsumers);
    }
    ptx::fence_mbarrier_init();
    shared.first_slot[0] = 0;
    shared.first_slot[1] = p.num_columns;  // of a plain product
  }
  __syncthreads();

  PrefillSchedule schedule{.first_slot = shared.first_slot,
                           .num_experts = num_experts,
                           .row_tiles = p.row_tiles,
                           .tokens = C::kTokens,
                           .width = C::kTokens};
  PrefillWork work;
  Producer<C> producer(shared, input, p);
  if (thread == kProducer) producer.prepare();
  if (plain && thread == kProducer && schedule.find(static_cast<int>(blockIdx.x), work)) {
    producer.start_weights(work);
  }
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  if (!plain) {
    for (int e = thread; e <= num_experts; e += C::kThreads) {
      shared.first_slot[e] = p.groups.first_slot[e];
    }
    __syncthreads();
  }

  int item = static_cast<int>(blockIdx.x);
  bool found = schedule.find(item, work);
  const auto next = [&] { found = schedule.find(item += static_cast<int>(gridDim.x), work); };
  if (thread >= kProducer) {
    ptx::setmaxnreg_decrease<C::kProducerRegisters>();
    if (thread == kProducer) {
      for (; found; next()) producer.load(work);
    }
  } else {
    ptx::setmaxnreg_increase<C::kConsumerRegisters>();
    Consumer<C> consumer(shared, p);
    const auto compute = [&]<int kWidth> {
      for (; found && work.width == kWidth; next()) consumer.template compute<kWidth>(work);
    };
    compute.template operator()<C::kTokens>();
    if constexpr (C::kTokens >= 32) compute.template operator()<C::kTokens / 2>();
    if constexpr (C::kTokens >= 64) compute.template operator()<C::kTokens / 4>();
  }
}

template <class C>
void run(const PrefillParams& p, const PrefillInput& input, const Launch& how) {
  static_assert(sizeof(Shared<C>) <= kSharedBytes);
  constexpr auto kernel = prefill_kernel<C>;
  allow_shared_memory<kernel>();
  const std::int64_t most_token_tiles =
      p.num_columns / C::kTokens + std::max(1, p.groups.num_experts);
  const auto blocks = static_cast<unsigned>(
      std::min<std::int64_t>(device_facts().num_sms, most_token_tiles * p.row_tiles));
  launch(kernel, {.grid = {blocks}, .block = {C::kThreads}, .shared_bytes = sizeof(Shared<C>)}, how,
         input, p);
}

/// Calls `use` with the configuration of a tile; false where there is none.
template <WeightFormat kFormat, std::size_t kIndex = 0>
bool with_config(const PrefillTile& tile, auto&& use) {
  if constexpr (kIndex == kPrefillTiles.size()) {
    return false;
  } else {
    constexpr PrefillTile kTile = kPrefillTiles[kIndex];
    if (tile == kTile) {
      use(Config<kFormat, kTile.tokens, kTile.consumers>{});
      return true;
    }
    return with_config<kFormat, kIndex + 1>(tile, use);
  }
}

}  // namespace

void make_prefill_input(const PrefillBuffer& buffer, PrefillInput& input) {
  for (std::size_t i = 0; i < kPrefillWidths.size(); ++i) {
    const auto encoded = encode_tensor_map({.address = buffer.x,
                                            .type = DType::bf16,
                                            .rows = buffer.rows,
                                            .columns = buffer.cols,
                                            .row_pitch_bytes = buffer.stride * 2,
                                            .box_rows = kPrefillWidths[i],
                                            .box_columns = kBlockCols,
                                            .swizzle = TileSwizzle::bytes_128},
                                           input.maps[i]);
    if (!encoded) fail(encoded.error().message);
  }
}

bool prefill_product_available() { return device_facts().has_bulk_copies; }

void prefill_product(const Product& product, const PrefillInput& input, const PrefillTile& tile,
                     const Launch& how) {
  check(product.groups.num_experts <= kMaxExperts, "prefill product: at most 128 experts");
  const PrefillParams p{.weights = product.weights,
                        .num_columns = static_cast<int>(product.num_columns),
                        .row_tiles = static_cast<int>(
                            (product.weights.row_blocks() + tile.consumers - 1) / tile.consumers),
                        .unit = product.weights.format == WeightFormat::mxfp4 ? kMxfp4Unit : 1.0f,
                        .swiglu_limit = product.swiglu_limit,
                        .bias = product.bias,
                        .epilogue = product.epilogue,
                        .out = product.out,
                        .out_stride = product.out_stride,
                        .groups = product.groups};
  const auto use = [&]<class C>(C) { run<C>(p, input, how); };
  const bool known = product.weights.format == WeightFormat::bf16
                         ? with_config<WeightFormat::bf16>(tile, use)
                         : with_config<WeightFormat::mxfp4>(tile, use);
  check(known, "prefill product: no such tile");
}

}  // namespace gauntlet::kernels::cuda::inline product
