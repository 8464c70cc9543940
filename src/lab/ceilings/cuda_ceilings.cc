// Times the GPU's probes by events, and the links between host and device.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "core/cuda/check.h"
#include "lab/ceilings/ceiling_backends.h"
#include "lab/ceilings/ceilings_cuda.h"

namespace gauntlet::lab::inline ceilings {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kProbeSeconds = 0.03;
constexpr int kMinSamples = 5;
constexpr double kWarmUpSeconds = 0.3;  // an idle GPU needs that long to raise its clocks
constexpr std::int64_t kLargestBuffer = std::int64_t{4} << 30;  // much above any L2
constexpr std::int64_t kSmallestBuffer = std::int64_t{256} << 20;
constexpr std::size_t kLinkBytes = std::size_t{256} << 20;

struct FreeDevice {
  void operator()(void* data) const { cudaFree(data); }
};
using DeviceMemory = std::unique_ptr<void, FreeDevice>;

DeviceMemory device_memory(std::size_t bytes) {
  void* data = nullptr;
  cuda_check(cudaMalloc(&data, bytes));
  return DeviceMemory(data);
}

struct FreePinned {
  void operator()(void* data) const { cudaFreeHost(data); }
};
using PinnedMemory = std::unique_ptr<void, FreePinned>;

PinnedMemory pinned_memory(std::size_t bytes) {
  void* data = nullptr;
  cuda_check(cudaMallocHost(&data, bytes));
  return PinnedMemory(data);
}

/// A stream and the two events around a sample on it.
class Timer {
 public:
  Timer() {
    cuda_check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    cuda_check(cudaEventCreate(&start_));
    cuda_check(cudaEventCreate(&stop_));
  }
  ~Timer() {
    if (stop_) cudaEventDestroy(stop_);
    if (start_) cudaEventDestroy(start_);
    if (stream_) cudaStreamDestroy(stream_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  cudaStream_t stream() const { return stream_; }

  double seconds(const std::function<void()>& run) {
    cuda_check(cudaEventRecord(start_, stream_));
    run();
    cuda_check(cudaEventRecord(stop_, stream_));
    cuda_check(cudaEventSynchronize(stop_));
    float ms = 0;
    cuda_check(cudaEventElapsedTime(&ms, start_, stop_));
    return 1e-3 * ms;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

std::vector<double> sample_seconds(const Probe& probe, Timer& timer) {
  if (probe.prepare) probe.prepare();
  timer.seconds(probe.run);
  std::vector<double> times;
  double total = 0;
  for (int samples = 0; samples < kMinSamples || total < kProbeSeconds; ++samples) {
    const double seconds = timer.seconds(probe.run);
    times.push_back(seconds);
    total += seconds;
  }
  return times;
}

/// The host memory that the links are measured with.
struct LinkMemory {
  PinnedMemory pinned = pinned_memory(kLinkBytes);
  std::vector<std::byte> pageable = std::vector<std::byte>(kLinkBytes);
};

std::vector<Probe> link_probes(const CudaSpace& space, LinkMemory& memory) {
  const std::size_t size = std::min(kLinkBytes, static_cast<std::size_t>(space.bytes));
  const auto copy = [&space, size](std::string name, void* to, const void* from,
                                   cudaMemcpyKind kind) {
    return Probe{.ceiling = std::move(name),
                 .method = "cudaMemcpyAsync",
                 .amount = static_cast<double>(size),
                 .run = [=, stream = space.stream] {
                   cuda_check(cudaMemcpyAsync(to, from, size, kind, stream));
                 }};
  };
  return {copy("h2d_pinned", space.to, memory.pinned.get(), cudaMemcpyHostToDevice),
          copy("d2h_pinned", memory.pinned.get(), space.from, cudaMemcpyDeviceToHost),
          copy("h2d_pageable", space.to, memory.pageable.data(), cudaMemcpyHostToDevice),
          copy("d2h_pageable", memory.pageable.data(), space.from, cudaMemcpyDeviceToHost)};
}

std::int64_t buffer_bytes() {
  std::size_t free_bytes = 0, all_bytes = 0;
  cuda_check(cudaMemGetInfo(&free_bytes, &all_bytes));
  const auto quarter = static_cast<std::int64_t>(free_bytes / 4);
  return std::min(kLargestBuffer, quarter) / kCudaGranule * kCudaGranule;
}

Expected<Ceilings> measure(const GpuInfo& gpu, const CeilingProgress& progress) {
  const std::int64_t bytes = buffer_bytes();
  if (bytes < std::max(kSmallestBuffer, 4 * gpu.l2_bytes)) {
    return Error{
        fmt::format("{} has too little free memory to measure its ceilings: two buffers of "
                    "{} MiB are all that fits; end what else runs on it",
                    gpu.name, bytes >> 20)};
  }
  Timer timer;
  const DeviceMemory from = device_memory(static_cast<std::size_t>(bytes));
  const DeviceMemory to = device_memory(static_cast<std::size_t>(bytes));
  const CudaSpace space{.stream = timer.stream(),
                        .num_sms = gpu.num_sms,
                        .max_threads_per_sm = gpu.max_threads_per_sm,
                        .capability = 10 * gpu.compute_major + gpu.compute_minor,
                        .l2_bytes = gpu.l2_bytes,
                        .from = from.get(),
                        .to = to.get(),
                        .bytes = bytes};
  fill_random(space.from, bytes, {}, space.stream);
  LinkMemory links;

  std::vector<Probe> probes = cuda_dram_probes(space);
  for (auto list : {cuda_bulk_probes(space), cuda_cache_probes(space), cuda_fma_probes(space),
                    cuda_mma_probes(space), cuda_wgmma_probes(space), cuda_cublas_probes(space),
                    link_probes(space, links)}) {
    std::move(list.begin(), list.end(), std::back_inserter(probes));
  }
  const auto begin = Clock::now();
  while (std::chrono::duration<double>(Clock::now() - begin).count() < kWarmUpSeconds) {
    timer.seconds(probes.front().run);
  }

  Ceilings ceilings;
  for (const Probe& probe : probes) {
    if (!ceilings.values.contains(probe.ceiling)) progress(probe.ceiling);
    record(ceilings, probe, sample_seconds(probe, timer));
  }
  return ceilings;
}

}  // namespace

Expected<Ceilings> measure_cuda_ceilings(const MachineInfo& machine,
                                         const CeilingProgress& progress) {
  if (machine.gpus.empty()) {
    return Error{
        fmt::format("the ceilings of a GPU cannot be measured: {}",
                    machine.no_gpu_reason.empty() ? "no CUDA device" : machine.no_gpu_reason)};
  }
  const GpuInfo& gpu = machine.gpus.front();
  try {
    return measure(gpu, progress);
  } catch (const CudaError& fault) {
    return Error{fmt::format("the ceilings of {} cannot be measured: {}", gpu.name, fault.what())};
  }
}

}  // namespace gauntlet::lab::inline ceilings
