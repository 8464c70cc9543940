// A GPU as a backend: one stream, events around the work, and the wait for the whole device as a
// witness against the events.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>

#include "core/cuda/check.h"
#include "core/cuda/device.h"
#include "core/host_array.h"
#include "core/threads.h"
#include "lab/measure/backend.h"
#include "lab/measure/child_processes.h"
#include "lab/measure/cuda_fill.h"

namespace gauntlet::lab::inline measure {
namespace {

using Clock = std::chrono::steady_clock;

double since_ns(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const GpuInfo& gpu) : gpu_(gpu) {
    adopt_orphans();
    cuda_check(cudaSetDevice(0));
    // Spinning keeps the host's reaction to a finished stream in the microseconds.
    cuda_check(cudaSetDeviceFlags(cudaDeviceScheduleSpin));
    cuda_check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    cuda_check(cudaEventCreate(&start_));
    cuda_check(cudaEventCreate(&stop_));
    flush_bytes_ = static_cast<std::size_t>(3 * gpu.l2_bytes);
    cuda_check(cudaMalloc(&flush_, flush_bytes_));
    if (auto nvml = Nvml::open()) nvml_ = std::move(*nvml);
  }
  ~CudaBackend() override {
    cudaFree(flush_);
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
    cudaStreamDestroy(stream_);
  }

  BackendKind kind() const override { return BackendKind::cuda; }

  void* allocate(std::size_t bytes, Memory memory) override {
    void* pointer = nullptr;
    switch (memory) {
      case Memory::device:
        cuda_check(cudaMalloc(&pointer, bytes));
        break;
      case Memory::managed:
        cuda_check(cudaMallocManaged(&pointer, bytes));
        break;
      case Memory::pinned:
        cuda_check(cudaMallocHost(&pointer, bytes));
        break;
    }
    return pointer;
  }
  void release(void* pointer, Memory memory) noexcept override {
    if (memory == Memory::pinned) {
      cudaFreeHost(pointer);
    } else {
      cudaFree(pointer);
    }
  }
  void upload(void* to, const void* from, std::size_t bytes) override {
    cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_));
    cuda_check(cudaStreamSynchronize(stream_));
  }
  bool download(void* to, const void* from, std::size_t bytes) override {
    cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_));
    cuda_check(cudaStreamSynchronize(stream_));
    return true;
  }
  /// In the stream, like renew(): synchronize() or what is timed next waits for it.
  void set_bytes(void* to, unsigned char value, std::size_t bytes) override {
    cuda_check(cudaMemsetAsync(to, value, bytes, stream_));
  }
  void renew(const InputJob& job) override {
    if (fill_on_device(job, stream_)) return;
    const std::size_t element = size_of(job.spec.type);
    made_.resize(static_cast<std::size_t>(job.spec.count) * element);
    if (job.spec.fill.whole) {
      job.write(made_.data(), 0, job.spec.count);
    } else {
      parallel_for(job.spec.count, [&](std::int64_t begin, std::int64_t end) {
        job.write(made_.data() + static_cast<std::size_t>(begin) * element, begin, end);
      });
    }
    upload(job.data, made_.data(), made_.size());
  }

  Side make_side(const Target& target, std::size_t side, const void* params) override {
    const SideSource& source = target.source.cuda[side];
    check(source.cuda != nullptr, target.id() + " has no CUDA sides in this build");
    return source.cuda(params,
                       {.stream = stream_,
                        .num_sms = gpu_.num_sms,
                        .max_threads_per_sm = gpu_.max_threads_per_sm,
                        .shared_bytes_per_sm = static_cast<std::size_t>(gpu_.shared_bytes_per_sm),
                        .l2_bytes = static_cast<std::size_t>(gpu_.l2_bytes)});
  }

  void synchronize() override { cuda_check(cudaDeviceSynchronize()); }

  void watch() override {}

  Timing time(const std::function<void()>& work, Caches caches) override {
    // The lab's own work is over; a device that is busy all the same works for somebody else.
    cuda_check(cudaStreamSynchronize(stream_));
    const auto waited = Clock::now();
    cuda_check(cudaDeviceSynchronize());
    Timing timing{.before_ns = since_ns(waited)};
    // Not waited for: the timed work queues up behind it, so no launch gap is measured.
    if (caches == Caches::flushed) flush_caches();
    cuda_check(cudaEventRecord(start_, stream_));
    work();
    cuda_check(cudaEventRecord(stop_, stream_));
    cuda_check(cudaEventSynchronize(stop_));
    const auto stopped = Clock::now();
    cuda_check(cudaDeviceSynchronize());
    timing.after_ns = since_ns(stopped);
    float ms = 0;
    cuda_check(cudaEventElapsedTime(&ms, start_, stop_));
    timing.ns = ms * 1e6;
    timing.left_process = has_child_process();
    return timing;
  }

  void flush_caches() override { cuda_check(cudaMemsetAsync(flush_, 0x5A, flush_bytes_, stream_)); }

  double min_sample_ns() const override { return 1e6; }
  std::int64_t set_bytes_limit(Cost::Level level) const override {
    switch (level) {
      case Cost::Level::cache:
      case Cost::Level::l1_cache:
        return gpu_.l2_bytes / 2;
      case Cost::Level::host_link:
        return std::int64_t{1} << 30;
      case Cost::Level::dram:
        break;
    }
    return std::min(std::int64_t{6} << 30, gpu_.memory_bytes / 4);
  }

  std::optional<GpuState> sensors() override {
    if (!nvml_) return std::nullopt;
    auto state = nvml_->state(0);
    if (!state) return std::nullopt;
    return *state;
  }

 private:
  GpuInfo gpu_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
  void* flush_ = nullptr;
  std::size_t flush_bytes_ = 0;
  std::unique_ptr<Nvml> nvml_;
  HostArray<unsigned char> made_;  // inputs that only the host can make
};

}  // namespace

Expected<std::unique_ptr<Backend>> make_cuda_backend() {
  const GpuQuery query = query_gpus();
  if (query.gpus.empty()) return Error{query.reason, ErrorKind::environment};
  return std::unique_ptr<Backend>(std::make_unique<CudaBackend>(query.gpus.front()));
}

}  // namespace gauntlet::lab::inline measure
