#include <cuda_runtime.h>

#include "core/cuda/check.h"
#include "core/cuda/lz4_inflate.h"
#include "core/storage/lz4_block.h"

namespace gauntlet {
namespace {

constexpr int kWarp = 32;
constexpr int kWarpsPerBlock = 4;

/// Lane 0 walks the sequences, all lanes move their bytes.
__global__ void inflate(Lz4Blocks job) {
  const std::int64_t number = std::int64_t{blockIdx.x} * kWarpsPerBlock + threadIdx.x / kWarp;
  if (number >= job.count) return;
  const Lz4Lane lane{.number = static_cast<int>(threadIdx.x) % kWarp, .of = kWarp};
  const Lz4Place place = job.places[number];
  const unsigned char* in = job.compressed + place.begin;
  unsigned char* out = job.out + place.block * job.block_bytes;
  Lz4Parser parser(in, place.bytes, job.block_bytes);
  for (;;) {
    Lz4Sequence sequence;
    int step = 0;
    if (lane.number == 0) step = static_cast<int>(parser.next(sequence));
    step = __shfl_sync(~0u, step, 0);
    if (step != static_cast<int>(Lz4Parser::Step::sequence)) {
      const bool corrupt = step == static_cast<int>(Lz4Parser::Step::corrupt);
      if (lane.number == 0) job.came_to[place.block] = corrupt ? kLz4Corrupt : parser.written();
      return;
    }
    sequence.literals_at = __shfl_sync(~0u, sequence.literals_at, 0);
    sequence.num_literals = __shfl_sync(~0u, sequence.num_literals, 0);
    sequence.to = __shfl_sync(~0u, sequence.to, 0);
    sequence.distance = __shfl_sync(~0u, sequence.distance, 0);
    sequence.match_length = __shfl_sync(~0u, sequence.match_length, 0);
    move_lz4_literals(sequence, in, out, lane);
    // The match may begin in the literals that other lanes just wrote, and the next one in this.
    __syncwarp();
    move_lz4_match(sequence, out, lane);
    __syncwarp();
  }
}

}  // namespace

void inflate_lz4_blocks(const Lz4Blocks& blocks, cudaStream_t stream) {
  if (blocks.count <= 0) return;
  const auto grid = static_cast<unsigned>((blocks.count + kWarpsPerBlock - 1) / kWarpsPerBlock);
  inflate<<<grid, kWarpsPerBlock * kWarp, 0, stream>>>(blocks);
  cuda_check(cudaGetLastError());
}

}  // namespace gauntlet
