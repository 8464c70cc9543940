// A GPU as a backend: one stream, events around the work, and the wall clock as a witness against
// the events.
#include <cuda_runtime_api.h>

#include <chrono>

#include "core/cuda/check.h"
#include "core/cuda/device.h"
#include "lab/measure/backend.h"

namespace gauntlet::lab::inline measure {
namespace {

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const GpuInfo& gpu) : gpu_(gpu) {
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
  void download(void* to, const void* from, std::size_t bytes) override {
    cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_));
    cuda_check(cudaStreamSynchronize(stream_));
  }
  void set_bytes(void* to, unsigned char value, std::size_t bytes) override {
    cuda_check(cudaMemsetAsync(to, value, bytes, stream_));
    cuda_check(cudaStreamSynchronize(stream_));
  }

  Side make_side(const Target& target, SideIndex side, const void* params) override {
    check(target.source.cuda.has_value(), target.id() + " has no CUDA sides in this build");
    return (*target.source.cuda)[side](
        params, {.stream = stream_,
                 .num_sms = gpu_.num_sms,
                 .max_threads_per_sm = gpu_.max_threads_per_sm,
                 .shared_bytes_per_sm = static_cast<std::size_t>(gpu_.shared_bytes_per_sm),
                 .l2_bytes = static_cast<std::size_t>(gpu_.l2_bytes)});
  }

  void synchronize() override { cuda_check(cudaDeviceSynchronize()); }

  Timing time(const std::function<void()>& work) override {
    const auto begin = std::chrono::steady_clock::now();
    cuda_check(cudaEventRecord(start_, stream_));
    work();
    cuda_check(cudaEventRecord(stop_, stream_));
    cuda_check(cudaEventSynchronize(stop_));
    cuda_check(cudaDeviceSynchronize());
    const std::chrono::duration<double, std::nano> wall = std::chrono::steady_clock::now() - begin;
    float ms = 0;
    cuda_check(cudaEventElapsedTime(&ms, start_, stop_));
    return {.ns = ms * 1e6, .wall_ns = wall.count()};
  }

  void flush_caches() override {
    // Not synchronised: the timed work queues up behind it, so no launch gap is measured.
    cuda_check(cudaMemsetAsync(flush_, 0x5A, flush_bytes_, stream_));
  }

  double min_sample_ns() const override { return 2e6; }

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
};

}  // namespace

Expected<std::unique_ptr<Backend>> make_cuda_backend() {
  const GpuQuery query = query_gpus();
  if (query.gpus.empty()) return Error{query.reason, ErrorKind::environment};
  return std::unique_ptr<Backend>(std::make_unique<CudaBackend>(query.gpus.front()));
}

}  // namespace gauntlet::lab::inline measure
