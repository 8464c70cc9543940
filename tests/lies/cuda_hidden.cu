// Sides on a GPU that work where the clock does not look: on other streams, from other threads, in
// other processes; and honest twins that join their timed stream.
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include "tests/lies/lie.h"
#include "tests/lies/scale.cuh"

namespace gauntlet::lies {
namespace {

Params part_of(const Params& p, std::int64_t begin, std::int64_t end) {
  return {p.in + begin, p.out + begin, end - begin};
}

lab::Side other_stream(const Params& p, const lab::Cuda&) {
  return [p, own = own_stream()] { scale(p, own.get(), kSlowPasses); };
}

/// Honest while it is verified and warmed up and once a hundred calls, elsewhere otherwise.
lab::Side other_stream_mostly(const Params& p, const lab::Cuda& cuda) {
  static std::atomic<int> calls{0};
  return [p, own = own_stream(), stream = cuda.stream] {
    const int call = calls++;
    scale(p, call < 40 || call % 100 == 0 ? stream : own.get(), kSlowPasses);
  };
}

/// Always 28% of it.
lab::Side other_stream_in_part(const Params& p, const lab::Cuda& cuda) {
  const std::int64_t cut = p.count * 72 / 100;
  return [p, cut, own = own_stream(), stream = cuda.stream] {
    scale(part_of(p, 0, cut), stream, kSlowPasses);
    scale(part_of(p, cut, p.count), own.get(), kSlowPasses);
  };
}

/// Another stream that starts after the timed one and that the timed one waits for.
lab::Side joins_stream(const Params& p, const lab::Cuda& cuda) {
  struct Events {
    cudaEvent_t begun = nullptr, done = nullptr;
    Events() {
      cuda_check(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming));
      cuda_check(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    }
    ~Events() {
      cudaEventDestroy(begun);
      cudaEventDestroy(done);
    }
  };
  const auto events = std::make_shared<Events>();
  return [p, events, own = own_stream(), stream = cuda.stream] {
    cuda_check(cudaEventRecord(events->begun, stream));
    cuda_check(cudaStreamWaitEvent(own.get(), events->begun));
    scale(p, own.get());
    cuda_check(cudaEventRecord(events->done, own.get()));
    cuda_check(cudaStreamWaitEvent(stream, events->done));
  };
}

/// A thread that launches on a stream of its own when it is told, some time later.
class Servant {
 public:
  explicit Servant(const Params& p) : thread_([this, p] { serve(p); }) {}
  ~Servant() {
    told_ = -1;
    told_.notify_one();
    thread_.join();
  }
  void tell() {
    ++told_;
    told_.notify_one();
  }

 private:
  void serve(const Params& p) {
    const auto own = own_stream();
    for (int seen = 0;;) {
      told_.wait(seen);
      const int now = told_;
      if (now < 0) return;
      for (; seen < now; ++seen) scale(p, own.get(), kSlowPasses);
    }
  }
  std::atomic<int> told_{0};
  std::thread thread_;
};

lab::Side leaves_thread(const Params& p, const lab::Cuda& cuda) {
  return [p, servant = std::make_shared<Servant>(p), stream = cuda.stream, calls = 0]() mutable {
    if (++calls < 6) {
      scale(p, stream, kSlowPasses);
    } else {
      servant->tell();
    }
  };
}

/// Right, but a process of its own stays behind.
lab::Side leaves_process(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream, calls = 0]() mutable {
    scale(p, stream);
    if (++calls == 6 && fork() == 0) {
      sleep(5);
      _exit(0);
    }
  };
}

}  // namespace

std::vector<CudaLie<Params>> cuda_hidden_lies() {
  return {{"other_stream", other_stream},
          {"other_stream_mostly", other_stream_mostly},
          {"other_stream_in_part", other_stream_in_part},
          {"joins_stream", joins_stream},
          {"leaves_thread", leaves_thread},
          {"leaves_process", leaves_process}};
}

}  // namespace gauntlet::lies
