// Sides on a GPU that work from threads and processes of their own, before their clock starts or
// after it stopped; and honest twins that wait for theirs within a run.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "tests/lies/lie.h"
#include "tests/lies/scale.cuh"
#include "tests/lies/servant.h"

namespace gauntlet::lies {
namespace {

using std::chrono::microseconds;

__global__ void wait_for(std::int64_t ns) {
  for (std::int64_t waited = 0; waited < ns; waited += 1000) __nanosleep(1000);
}

/// Launches for another thread, on a stream of its own, and returns when the work is done.
void scale_elsewhere(const Params& p, int passes) {
  const auto own = own_stream();
  scale(p, own.get(), passes);
  cuda_check(cudaStreamSynchronize(own.get()));
}

/// In order on the timed stream, from a thread that the run waits for.
lab::Side joins_thread(const Params& p, const lab::Cuda& cuda) {
  const auto servant = std::make_shared<Servant>([p, stream = cuda.stream] { scale(p, stream); });
  return [servant] {
    servant->tell();
    servant->wait();
  };
}

lab::Side leaves_thread(const Params& p, const lab::Cuda& cuda) {
  const auto servant = std::make_shared<Servant>([p] { scale_elsewhere(p, kSlowPasses); });
  return [p, servant, stream = cuda.stream, calls = 0]() mutable {
    if (++calls < 6) return scale(p, stream, kSlowPasses);
    servant->tell();
  };
}

/// Launches when the device was found idle and the outputs are on their way to the host.
lab::Side launches_late(const Params& p, const lab::Cuda& cuda) {
  const auto servant = std::make_shared<Servant>([p] {
    std::this_thread::sleep_for(microseconds(50));
    scale_elsewhere(p, 1);
  });
  return [p, servant, stream = cuda.stream, calls = 0]() mutable {
    if (++calls < 6) return scale(p, stream, kSlowPasses);
    servant->tell();
  };
}

/// What `enter` left on a stream of its own computes once the inputs are there.
lab::Side works_after_enter(const Params& p, const lab::Cuda&) {
  lab::Side side([] {});
  side.enter = [p, own = own_stream()] {
    wait_for<<<1, 1, 0, own.get()>>>(3'000'000);
    scale(p, own.get(), kSlowPasses);
  };
  return side;
}

/// A thread that launches over and over until it is told to stop.
class Launcher {
 public:
  explicit Launcher(const Params& p) : thread_([this, p] { launch(p); }) {}
  ~Launcher() {
    stop_ = true;
    thread_.join();
  }

 private:
  void launch(const Params& p) {
    const auto own = own_stream();
    while (!stop_) {
      scale(p, own.get());
      cuda_check(cudaStreamSynchronize(own.get()));
    }
  }
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Computes all the time, so that the answer is there when it is asked for. One set shows it.
lab::Side watches_inputs(const Params& p, const lab::Cuda& cuda) {
  static std::atomic<int> sides{0};
  if (sides++ > 0) return [p, stream = cuda.stream] { scale(p, stream); };
  return [launcher = std::make_shared<Launcher>(p)] {
    std::this_thread::sleep_for(microseconds(100));
  };
}

/// Right by itself, but keeps the device busy while the baseline runs.
lab::Side hinders_baseline(const Params& p, const lab::Cuda& cuda) {
  const auto servant = std::make_shared<Servant>([p] { scale_elsewhere(p, 8 * kSlowPasses); });
  return [p, servant, stream = cuda.stream] {
    scale(p, stream);
    servant->tell();
  };
}

/// Right, but a process of its own stays behind and works.
lab::Side leaves_process(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream, calls = 0]() mutable {
    scale(p, stream);
    if (++calls != 6 || fork() != 0) return;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (std::chrono::steady_clock::now() < end) {
    }
    _exit(0);
  };
}

template <int passes>
lab::Side joins_process(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const pid_t child = vfork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    scale(p, stream, passes);
  };
}

/// Writes what it computed to a file, reads it back and uploads it.
template <int passes>
lab::Side uses_file(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    scale(p, stream, passes);
    std::vector<float> host(static_cast<std::size_t>(p.count));
    const std::size_t bytes = host.size() * sizeof(float);
    cuda_check(cudaMemcpyAsync(host.data(), p.out, bytes, cudaMemcpyDefault, stream));
    cuda_check(cudaStreamSynchronize(stream));
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
    if (!file || std::fwrite(host.data(), 1, bytes, file.get()) != bytes) return;
    std::rewind(file.get());
    if (std::fread(host.data(), 1, bytes, file.get()) != bytes) host[0] = 0;
    cuda_check(cudaMemcpyAsync(p.out, host.data(), bytes, cudaMemcpyDefault, stream));
    cuda_check(cudaStreamSynchronize(stream));
  };
}

lab::Side leaves_nice(const Params& p, const lab::Cuda& cuda) {
  lab::Side side([p, stream = cuda.stream] { scale(p, stream); });
  side.enter = [] { setpriority(PRIO_PROCESS, 0, 0); };
  side.leave = [] { setpriority(PRIO_PROCESS, 0, 10); };
  return side;
}

}  // namespace

std::vector<CudaLie<Params>> cuda_late_lies() {
  return {{"joins_thread", joins_thread},
          {"leaves_thread", leaves_thread},
          {"launches_late", launches_late},
          {"works_after_enter", works_after_enter},
          {"watches_inputs", watches_inputs},
          {"hinders_baseline", hinders_baseline},
          {"leaves_process", leaves_process},
          {"joins_process", joins_process<1>, joins_process<16 * kSlowPasses>},
          {"uses_file", uses_file<1>, uses_file<256 * kSlowPasses>},
          {"leaves_nice", leaves_nice}};
}

}  // namespace gauntlet::lies
