// An all-gather in chunks, each of which is folded while the next ones come.
#pragma once
#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "catalog/ch04/copy_engine_collectives/pair.h"
#include "core/affine_rounds.h"
#include "core/cuda/captured_work.h"
#include "core/cuda/check.h"
#include "core/cuda/gpu_set.h"
#include "core/cuda/memory.h"
#include "lab/author/side.h"

namespace gauntlet::ch04::copy_engine_collectives::cuda {

constexpr int kFoldThreads = kBlockWords / 4;

/// A chunk of all shards, [sources] with `stride` words between them, to one.
static __global__ void __launch_bounds__(kFoldThreads)
    fold(const std::uint32_t* shards, const std::uint32_t* factor, std::uint32_t* out, int sources,
         std::int64_t stride) {
  const std::int64_t at = 4 * (std::int64_t{blockIdx.x} * kFoldThreads + threadIdx.x);
  uint4 sum = {0, 0, 0, 0};
  for (int source = 0; source < sources; ++source) {
    uint4 x = *reinterpret_cast<const uint4*>(shards + source * stride + at);
    for (int round = 0; round < kRounds; ++round) {
      const std::uint32_t f = __ldg(factor + round);
      x = {affine_round(x.x, f), affine_round(x.y, f), affine_round(x.z, f), affine_round(x.w, f)};
    }
    sum = {sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w};
  }
  *reinterpret_cast<uint4*>(out + at) = sum;
}

/// The memory of all GPUs, and who carries between them.
class Gathering {
 public:
  explicit Gathering(const Params& p)
      : p_(p), workers_(p.devices), carriers_(p.devices, GpuSet::Priority::high) {
    for (int gpu = 0; gpu < size(); ++gpu) {
      gathered_.push_back(workers_.memory(gpu, 4 * size() * p.words));
      folded_.push_back(workers_.memory(gpu, 4 * p.words));
      factors_.push_back(workers_.memory(gpu, 4 * kRounds));
      const OnDevice on(workers_.device(gpu));
      for (std::int64_t chunk = 0; chunk < kChunks; ++chunk) arrived_.emplace_back();
    }
  }

  int size() const { return workers_.size(); }
  std::int64_t chunk_words() const { return p_.words / kChunks; }
  /// A chunk of a shard as a GPU has it.
  std::uint32_t* place(int gpu, int shard, std::int64_t chunk) {
    return words(gathered_[index(gpu)]) + shard * p_.words + chunk * chunk_words();
  }

  /// `bring(gpu, chunk, stream)` gets a chunk of all other shards to a GPU.
  template <class Bring>
  void run(cudaStream_t stream, Bring bring) {
    for (int gpu = 0; gpu < size(); ++gpu) {
      copy(place(gpu, gpu, 0), p_.in + gpu * p_.words, p_.words, stream);
      copy(words(factors_[index(gpu)]), p_.factor, kRounds, stream);
    }
    workers_.fork(stream);
    carriers_.fork(stream);
    for (std::int64_t chunk = 0; chunk < kChunks; ++chunk) {
      for (int gpu = 0; gpu < size(); ++gpu) {
        const OnDevice on(workers_.device(gpu));
        bring(gpu, chunk, carriers_.stream(gpu));
        const StreamEvent& arrived = arrived_[index(gpu) * kChunks + index(chunk)];
        arrived.record(carriers_.stream(gpu));
        arrived.hold(workers_.stream(gpu));
        fold<<<static_cast<unsigned>(chunk_words() / kBlockWords), kFoldThreads, 0,
               workers_.stream(gpu)>>>(place(gpu, 0, chunk), words(factors_[index(gpu)]),
                                       words(folded_[index(gpu)]) + chunk * chunk_words(), size(),
                                       p_.words);
        cuda_check(cudaGetLastError());
      }
    }
    carriers_.join(stream);
    workers_.join(stream);
    for (int gpu = 0; gpu < size(); ++gpu) {
      copy(p_.out + gpu * p_.words, words(folded_[index(gpu)]), p_.words, stream);
    }
  }

 private:
  template <class Number>
  static std::size_t index(Number number) {
    return static_cast<std::size_t>(number);
  }
  static std::uint32_t* words(const DeviceMemory& memory) {
    return reinterpret_cast<std::uint32_t*>(memory.data());
  }
  static void copy(std::uint32_t* to, const std::uint32_t* from, std::int64_t count,
                   cudaStream_t stream) {
    cuda_check(
        cudaMemcpyAsync(to, from, 4 * static_cast<std::size_t>(count), cudaMemcpyDefault, stream));
  }

  Params p_;
  GpuSet workers_, carriers_;
  std::vector<DeviceMemory> gathered_;  // of each GPU, [devices, words]
  std::vector<DeviceMemory> folded_;    // [words]
  std::vector<DeviceMemory> factors_;   // [kRounds]
  std::deque<StreamEvent> arrived_;     // [devices, kChunks]
};

/// A side whose fact is how many copies a run consists of.
template <class Bring>
lab::Side gathers(const Params& p, cudaStream_t stream, Bring bring) {
  const auto gathering = std::make_shared<Gathering>(p);
  const std::function<void()> run = [gathering, bring, stream] {
    gathering->run(stream, [&](int gpu, std::int64_t chunk, cudaStream_t carrier) {
      bring(*gathering, gpu, chunk, carrier);
    });
  };
  return {run, {{"copies", captured_copies(stream, run)}}};
}

}  // namespace gauntlet::ch04::copy_engine_collectives::cuda
