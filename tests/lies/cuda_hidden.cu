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

std::shared_ptr<CUevent_st> untimed_event() {
  cudaEvent_t event = nullptr;
  cuda_check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return {event, [](cudaEvent_t e) { cudaEventDestroy(e); }};
}

/// Always 28% of it, after the rest, so that a host that launches slowly does not bring it forward.
lab::Side other_stream_in_part(const Params& p, const lab::Cuda& cuda) {
  const std::int64_t cut = p.count * 72 / 100;
  return [p, cut, own = own_stream(), rest_done = untimed_event(), stream = cuda.stream] {
    scale(part_of(p, 0, cut), stream, kSlowPasses);
    cuda_check(cudaEventRecord(rest_done.get(), stream));
    cuda_check(cudaStreamWaitEvent(own.get(), rest_done.get()));
    scale(part_of(p, cut, p.count), own.get(), kSlowPasses);
  };
}

/// Another stream that starts after the timed one and that the timed one waits for.
lab::Side joins_stream(const Params& p, const lab::Cuda& cuda) {
  return [p, begun = untimed_event(), done = untimed_event(), own = own_stream(),
          stream = cuda.stream] {
    cuda_check(cudaEventRecord(begun.get(), stream));
    cuda_check(cudaStreamWaitEvent(own.get(), begun.get()));
    scale(p, own.get());
    cuda_check(cudaEventRecord(done.get(), own.get()));
    cuda_check(cudaStreamWaitEvent(stream, done.get()));
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
