// Sides on a GPU that work on streams that their events do not see; and an honest twin that joins
// its timed stream.
#include <atomic>
#include <memory>

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

}  // namespace

std::vector<CudaLie<Params>> cuda_hidden_lies() {
  return {{"other_stream", other_stream},
          {"other_stream_mostly", other_stream_mostly},
          {"other_stream_in_part", other_stream_in_part},
          {"joins_stream", joins_stream}};
}

}  // namespace gauntlet::lies
