// A GPU as a backend: one stream, events around the work, and a watch over everything else that
// could keep the device busy: other streams, other threads of the host, signal handlers.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "core/cuda/check.h"
#include "core/cuda/device.h"
#include "core/cuda/managed.h"
#include "core/host_array.h"
#include "core/os/threads.h"
#include "lab/measure/backend.h"
#include "lab/measure/cuda_fill.h"
#include "lab/measure/watch/child_processes.h"
#include "lab/measure/watch/library_threads.h"
#include "lab/measure/watch/signal_block.h"
#include "lab/measure/watch/unknown_work.h"

namespace gauntlet::lab::inline measure {
namespace {

using Clock = std::chrono::steady_clock;

// What threads of the lab's own need to end when their work is done.
constexpr auto kOwnThreadsEnd = std::chrono::milliseconds(5);
constexpr std::size_t kSnapshotAlignment = 256;

double since_ns(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

class CudaBackend final : public Backend {
 public:
  /// Watches from before the driver is asked for anything, because it begins threads then.
  CudaBackend()
      : known_(std::make_shared<KnownThreads>()),
        unknown_(known_),
        this_thread_(known_->add_this_thread()),
        driver_threads_(known_) {
    adopt_orphans();
  }
  Expected<void> open() {
    const GpuQuery query = query_gpus();
    if (query.gpus.empty()) return Error{query.reason, ErrorKind::environment};
    gpu_ = query.gpus.front();
    cuda_check(cudaSetDevice(0));
    // Spinning keeps the host's reaction to a finished stream in the microseconds.
    cuda_check(cudaSetDeviceFlags(cudaDeviceScheduleSpin));
    cuda_check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    cuda_check(cudaEventCreate(&start_));
    cuda_check(cudaEventCreate(&stop_));
    flush_bytes_ = static_cast<std::size_t>(3 * gpu_.l2_bytes);
    cuda_check(cudaMalloc(&flush_, flush_bytes_));
    if (auto nvml = Nvml::open()) nvml_ = std::move(*nvml);
    use_managed_memory();
    driver_threads_.adopt();
    measure_idle();
    return {};
  }
  ~CudaBackend() override {
    if (stream_ == nullptr) return;  // there is no GPU
    cudaFree(snapshot_);
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
    for (const Frozen& frozen : frozen_) {
      if (frozen.original == from) from = frozen.copy;
    }
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
      on_own_threads([&] {
        parallel_for(job.spec.count, [&](std::int64_t begin, std::int64_t end) {
          job.write(made_.data() + static_cast<std::size_t>(begin) * element, begin, end);
        });
      });
    }
    upload(job.data, made_.data(), made_.size());
  }
  void move_to_host(void* managed, std::size_t bytes) override {
    cuda_check(cudaStreamSynchronize(stream_));
    move_pages_to_host(managed, bytes);
  }

  Side make_side(const Target& target, std::size_t side, const void* params) override {
    const SideSource& source = target.source.cuda[side];
    check(source.cuda != nullptr, target.id() + " has no CUDA sides in this build");
    driver_threads_.close();
    return source.cuda(params,
                       {.stream = stream_,
                        .num_sms = gpu_.num_sms,
                        .max_threads_per_sm = gpu_.max_threads_per_sm,
                        .shared_bytes_per_sm = static_cast<std::size_t>(gpu_.shared_bytes_per_sm),
                        .l2_bytes = static_cast<std::size_t>(gpu_.l2_bytes)});
  }

  void synchronize() override { cuda_check(cudaDeviceSynchronize()); }

  void call(const std::function<void()>& work) override {
    const SignalBlock::Lifted lifted(signals_);
    work();
  }

  void watch() override {
    wait_for_threads(0);
    at_watch_ = unknown_.read();
  }

  Timing time(const std::function<void()>& work, Caches caches) override {
    // The lab's own work is over; a device that is busy all the same works for somebody else.
    cuda_check(cudaStreamSynchronize(stream_));
    Timing timing{.before_ns = busy_ns()};
    const UnknownWork::Reading before = unknown_.read();
    // Not waited for: the timed work queues up behind it, so no launch gap is measured.
    if (caches == Caches::flushed) flush_caches();
    {
      const SignalBlock::Lifted lifted(signals_);
      cuda_check(cudaEventRecord(start_, stream_));
      work();
      cuda_check(cudaEventRecord(stop_, stream_));
      cuda_check(cudaEventSynchronize(stop_));
    }
    const auto stopped = Clock::now();
    timing.after_ns = busy_ns();
    // What a thread or process launches a moment later is heard, and then waited for.
    const UnknownWork::Heard heard = unknown_.listen(stopped);
    at_rest_ = heard.last;
    timing.after_ns += busy_ns();
    timing.host_ns =
        std::max(0.0, UnknownWork::threads_ns(at_watch_, before) + heard.ns - idle_host_ns_);
    timing.restless = heard.restless;
    timing.left_process = at_watch_.has_process || before.has_process || at_rest_.has_process ||
                          has_younger_sibling();
    float ms = 0;
    cuda_check(cudaEventElapsedTime(&ms, start_, stop_));
    timing.ns = ms * 1e6;
    return timing;
  }

  /// On the device, where it takes a hundredth of the time that the way over the host's link does.
  void freeze(std::span<const Extent> outputs) override {
    frozen_.clear();
    const auto padded = [](std::size_t bytes) {
      return (bytes + kSnapshotAlignment - 1) / kSnapshotAlignment * kSnapshotAlignment;
    };
    std::size_t bytes = 0;
    for (const Extent& output : outputs) bytes += padded(output.bytes);
    // Where there is no room for it, outputs are downloaded as they are.
    if (bytes == 0 || !reserve_snapshot(bytes)) return;
    unsigned char* to = snapshot_;
    for (const Extent& output : outputs) {
      cuda_check(cudaMemcpyAsync(to, output.data, output.bytes, cudaMemcpyDefault, stream_));
      frozen_.push_back({output.data, to});
      to += padded(output.bytes);
    }
    cuda_check(cudaStreamSynchronize(stream_));
    late_ns_ = busy_ns();
    late_host_ns_ = UnknownWork::threads_ns(at_rest_, unknown_.read());
  }
  void listen_again(Timing& timing) override {
    timing.after_ns += std::exchange(late_ns_, 0);
    timing.host_ns += std::exchange(late_host_ns_, 0);
  }

  void flush_caches() override { cuda_check(cudaMemsetAsync(flush_, 0x5A, flush_bytes_, stream_)); }

  double min_sample_ns() const override { return 1e6; }
  std::int64_t set_bytes_limit(Cost::Level level) const override {
    switch (level) {
      case Cost::Level::cache:
      case Cost::Level::l1_cache:
        return gpu_.l2_bytes / 2;
      case Cost::Level::host_link:
      case Cost::Level::disk:
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
  struct Frozen {
    const void* original = nullptr;
    const void* copy = nullptr;
  };

  /// Moves a page to the device and back, so that whatever the driver begins for that is there
  /// before a side is.
  void use_managed_memory() {
    constexpr std::size_t kBytes = 1 << 16;
    void* managed = nullptr;
    cuda_check(cudaMallocManaged(&managed, kBytes));
    std::memset(managed, 0, kBytes);
    cudaMemLocation device = {.type = cudaMemLocationTypeDevice};
    cuda_check(cudaGetDevice(&device.id));
    // A machine that cannot do it has no targets that would.
    if (cudaMemPrefetchAsync(managed, kBytes, device, 0, stream_) == cudaSuccess) {
      cuda_check(cudaStreamSynchronize(stream_));
      move_pages_to_host(managed, kBytes);
    } else {
      cudaGetLastError();  // it is not left for the next call to find
    }
    cuda_check(cudaFree(managed));
  }

  /// How long the device is busy from now on, beyond what an idle one takes to say so.
  double busy_ns() const {
    const auto begin = Clock::now();
    cuda_check(cudaDeviceSynchronize());
    return std::max(0.0, since_ns(begin) - idle_answer_ns_);
  }

  /// How late an idle device answers, and how much CPU time the driver's own threads take
  /// meanwhile: the worst but one of twenty, since a side is charged for more.
  void measure_idle() {
    std::array<double, 20> answers{}, host{};
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const UnknownWork::Reading before = unknown_.read();
      cuda_check(cudaEventRecord(stop_, stream_));
      cuda_check(cudaEventSynchronize(stop_));
      const auto begin = Clock::now();
      cuda_check(cudaDeviceSynchronize());
      answers[i] = since_ns(begin);
      host[i] = UnknownWork::threads_ns(before, unknown_.listen(begin).last);
    }
    std::ranges::sort(answers);
    std::ranges::sort(host);
    idle_answer_ns_ = answers[answers.size() - 2];
    idle_host_ns_ = host[host.size() - 2];
  }

  /// Until no more threads than these are awake that the lab does not know.
  void wait_for_threads(int awake) const {
    const auto begin = Clock::now();
    while (unknown_.read().threads_awake > awake && Clock::now() - begin < kOwnThreadsEnd) {
    }
  }
  /// Work of the lab's on threads that come and go. What others use meanwhile is taken for theirs.
  template <class Work>
  void on_own_threads(const Work& work) {
    const UnknownWork::Reading before = unknown_.read();
    work();
    wait_for_threads(before.threads_awake);
    const UnknownWork::Reading after = unknown_.read();
    known_->add_spent(std::max(0.0, after.most_ns - before.least_ns));
  }

  bool reserve_snapshot(std::size_t bytes) {
    if (bytes <= snapshot_bytes_) return true;
    cudaFree(snapshot_);
    snapshot_ = nullptr;
    snapshot_bytes_ = 0;
    void* memory = nullptr;
    if (cudaMalloc(&memory, bytes) != cudaSuccess) {
      cudaGetLastError();  // it is not left for the next call to find
      return false;
    }
    snapshot_ = static_cast<unsigned char*>(memory);
    snapshot_bytes_ = bytes;
    return true;
  }

  SignalBlock signals_;  // before the driver's threads, which inherit it
  GpuInfo gpu_;
  std::shared_ptr<KnownThreads> known_;
  UnknownWork unknown_;
  KnownThreads::Lease this_thread_;
  LibraryThreads driver_threads_;
  UnknownWork::Reading at_watch_, at_rest_;
  double idle_answer_ns_ = 0, idle_host_ns_ = 0;
  double late_ns_ = 0, late_host_ns_ = 0;
  std::vector<Frozen> frozen_;
  unsigned char* snapshot_ = nullptr;
  std::size_t snapshot_bytes_ = 0;
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
  auto backend = std::make_unique<CudaBackend>();
  if (auto opened = backend->open(); !opened) return opened.error();
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace gauntlet::lab::inline measure
