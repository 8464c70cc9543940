// A group of blocks is copied and inflated while the next ones are read. How long a warp
// takes for its block does not depend on how few there are, so groups are inflated side by side.
#include <algorithm>
#include <array>
#include <memory>

#include "catalog/labs/input_pipeline/device_blocks.h"
#include "catalog/labs/input_pipeline/tail.h"
#include "core/cuda/stream_mark.h"
#include "lab/author/side.h"

namespace gauntlet::labs::input_pipeline::cuda {
namespace {

constexpr std::int64_t kGroupBlocks = 256;
constexpr std::size_t kLanes = 8;

struct Lanes {
  std::array<CudaStream, kLanes> streams;
  std::array<StreamMark, kLanes> done;
  StreamMark begun;
};

}  // namespace

lab::Side overlapped(const Params& p, const lab::Cuda& cuda) {
  const auto blocks = std::make_shared<DeviceBlocks>(p);
  const auto lanes = std::make_shared<Lanes>();
  const auto tail = std::make_shared<Tail>();
  return Tail::reported(tail, [p, blocks, lanes, tail, stream = cuda.stream] {
    lanes->begun.set(stream);
    for (const CudaStream& lane : lanes->streams) lanes->begun.hold(lane);
    blocks->queue.start();
    std::size_t lane = 0;
    for (std::int64_t begin = 0; begin < p.blocks; begin += kGroupBlocks) {
      const std::int64_t end = std::min(begin + kGroupBlocks, p.blocks);
      for (std::int64_t i = begin; i < end; ++i) blocks->queue.wait_for(i);
      if (end == p.blocks) tail->begin(stream);
      blocks->inflate(begin, end, lanes->streams[lane]);
      lane = (lane + 1) % kLanes;
    }
    for (std::size_t i = 0; i < kLanes; ++i) {
      lanes->done[i].set(lanes->streams[i]);
      lanes->done[i].hold(stream);
    }
    tail->end(stream);
  });
}

}  // namespace gauntlet::labs::input_pipeline::cuda
