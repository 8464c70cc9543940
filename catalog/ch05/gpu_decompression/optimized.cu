// The compressed blocks are copied; on the device a warp inflates each.
#include <cuda_runtime.h>

#include <cstring>
#include <memory>

#include "catalog/ch05/gpu_decompression/packed.h"
#include "core/cuda/memory.h"
#include "core/cuda/stream_copies.h"
#include "core/storage/lz4_block.h"
#include "lab/author/counted.h"

namespace gauntlet::ch05::gpu_decompression::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kWarpsPerBlock = 4;

struct Inflate {
  const unsigned char* packed;  // the blocks, one behind the other
  const std::int64_t* begins;   // [blocks + 1], into packed
  unsigned char* out;           // [blocks, block_bytes]
  std::int64_t* came_to;        // [blocks]
  std::int64_t blocks;
  std::int64_t block_bytes;
};

/// Lane 0 walks the sequences, all lanes move their bytes.
__global__ void inflate_blocks(Inflate job) {
  const std::int64_t block = std::int64_t{blockIdx.x} * kWarpsPerBlock + threadIdx.x / kWarp;
  if (block >= job.blocks) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const unsigned char* in = job.packed + job.begins[block];
  unsigned char* out = job.out + block * job.block_bytes;
  Lz4Parser parser(in, job.begins[block + 1] - job.begins[block], job.block_bytes);
  for (;;) {
    Lz4Sequence sequence;
    int step = 0;
    if (lane == 0) step = static_cast<int>(parser.next(sequence));
    step = __shfl_sync(~0u, step, 0);
    if (step != static_cast<int>(Lz4Parser::Step::sequence)) {
      const bool corrupt = step == static_cast<int>(Lz4Parser::Step::corrupt);
      if (lane == 0) job.came_to[block] = corrupt ? kLz4Corrupt : parser.written();
      return;
    }
    sequence.literals_at = __shfl_sync(~0u, sequence.literals_at, 0);
    sequence.num_literals = __shfl_sync(~0u, sequence.num_literals, 0);
    sequence.to = __shfl_sync(~0u, sequence.to, 0);
    sequence.distance = __shfl_sync(~0u, sequence.distance, 0);
    sequence.match_length = __shfl_sync(~0u, sequence.match_length, 0);
    for (std::int64_t i = lane; i < sequence.num_literals; i += kWarp) {
      out[sequence.to + i] = in[sequence.literals_at + i];
    }
    // The match may begin in the literals that other lanes just wrote.
    __syncwarp();
    for (std::int64_t i = lane; i < sequence.match_length; i += kWarp) {
      out[sequence.to + sequence.num_literals + i] = out[lz4_match_source(sequence, i)];
    }
    __syncwarp();
  }
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  const auto packed = std::make_shared<Packed>(*p.shard);
  const std::int64_t most = p.blocks * packed->most_bytes();
  const auto host = std::make_shared<PinnedMemory>(most);
  const auto device = std::make_shared<DeviceMemory>(most);
  const auto host_begins = std::make_shared<PinnedMemory>(8 * (p.blocks + 1));
  const auto device_begins = std::make_shared<DeviceMemory>(8 * (p.blocks + 1));
  const auto copies = std::make_shared<StreamCopies>();
  return lab::counted(
      {.name = "link_bytes", .total = [copies] { return static_cast<double>(copies->bytes()); }},
      [=, stream = cuda.stream] {
        auto* begins = reinterpret_cast<std::int64_t*>(host_begins->data());
        begins[0] = 0;
        for (std::int64_t i = 0; i < p.blocks; ++i) {
          const auto block = packed->block(p.pick[i]);
          std::memcpy(host->data() + begins[i], block.data(), block.size());
          begins[i + 1] = begins[i] + static_cast<std::int64_t>(block.size());
        }
        copies->copy(device_begins->data(), begins, 8 * static_cast<std::size_t>(p.blocks + 1),
                     stream);
        copies->copy(device->data(), host->data(), static_cast<std::size_t>(begins[p.blocks]),
                     stream);
        const auto grid = static_cast<unsigned>((p.blocks + kWarpsPerBlock - 1) / kWarpsPerBlock);
        inflate_blocks<<<grid, kWarpsPerBlock * kWarp, 0, stream>>>(
            {.packed = device->data(),
             .begins = reinterpret_cast<const std::int64_t*>(device_begins->data()),
             .out = reinterpret_cast<unsigned char*>(p.out),
             .came_to = p.came_to,
             .blocks = p.blocks,
             .block_bytes = 4 * p.block_tokens});
        cuda_check(cudaGetLastError());
      });
}

}  // namespace gauntlet::ch05::gpu_decompression::cuda
