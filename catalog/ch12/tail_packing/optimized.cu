// A block for every tile of a full wave; tiles that do not fill one are cut, so that all SMs get a
// piece.
#include <cuda_runtime.h>

#include "catalog/ch12/tail_packing/pair.h"
#include "core/affine_rounds.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch12::tail_packing::cuda {
namespace {

constexpr int kPieces = 16;  // that a tile of the last wave is cut into
static_assert(kWordsPerThread % kPieces == 0 && kRounds % 4 == 0);

/// As many words per thread of a tile as said, from `first` on.
template <int words>
__device__ void work_on(const Params& p, std::int64_t first) {
  const std::uint32_t* in = p.in + first + threadIdx.x;
  std::uint32_t* out = p.out + first + threadIdx.x;
  std::uint32_t x[words];
#pragma unroll
  for (int i = 0; i < words; ++i) x[i] = in[i * kThreads];
#pragma unroll 1
  for (int round = 0; round < kRounds; round += 4) {
    const uint4 f = __ldg(reinterpret_cast<const uint4*>(p.factor + round));
#pragma unroll
    for (int i = 0; i < words; ++i) {
      x[i] = affine_round(affine_round(affine_round(affine_round(x[i], f.x), f.y), f.z), f.w);
    }
  }
#pragma unroll
  for (int i = 0; i < words; ++i) out[i * kThreads] = x[i];
}

/// The first tiles whole, the others in pieces.
__global__ void __launch_bounds__(kThreads) run_tiles(Params p, std::int64_t whole) {
  if (blockIdx.x < whole) {
    work_on<kWordsPerThread>(p, blockIdx.x * kTileWords);
  } else {
    const std::int64_t piece = blockIdx.x - whole;
    work_on<kWordsPerThread / kPieces>(p, whole * kTileWords + piece * (kTileWords / kPieces));
  }
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  int blocks_per_sm = 0;
  cuda_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, run_tiles, kThreads, 0));
  const std::int64_t wave = std::int64_t{blocks_per_sm} * cuda.num_sms;
  const std::int64_t whole = p.tiles / wave * wave;
  return [p, whole, stream = cuda.stream] {
    const auto blocks = static_cast<unsigned>(whole + (p.tiles - whole) * kPieces);
    run_tiles<<<blocks, kThreads, 0, stream>>>(p, whole);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch12::tail_packing::cuda
