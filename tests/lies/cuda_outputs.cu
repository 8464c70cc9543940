// Sides on a GPU that leave something wrong behind, or hurt their process.
#include <dlfcn.h>
#include <unistd.h>

#include <string>

#include "tests/lies/lie.h"
#include "tests/lies/scale.cuh"

namespace gauntlet::lies {
namespace {

__global__ void add_one(float* out) { *out += 1.0f; }
__global__ void write_one(float* out) { *out = 1.0f; }
__global__ void write_nan(float* out) { *out = __int_as_float(0x7FC00000); }
__global__ void write_nowhere(float* nowhere) { *nowhere = 1.0f; }
__global__ void sleep_forever() {
  while (true) __nanosleep(1000);
}
/// Right for inputs that begin as the first ones did.
__global__ void scale_first_only(Params p, float* first, int call) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i == 0 && call == 0) *first = p.in[0];
  const bool known = call == 0 || p.in[0] == *first;
  if (i < p.count) p.out[i] = known ? 2.0f * p.in[i] : 0.0f;
}
/// Depends on an eighth of its input.
__global__ void scale_first_part(Params p) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < p.count) p.out[i] = 2.0f * p.in[i % (p.count / 8)];
}

lab::Side honest(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] { scale(p, stream); };
}

lab::Side equal_sides(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] { scale(p, stream, kSlowPasses); };
}

lab::Side wrong_result(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    scale(p, stream);
    add_one<<<1, 1, 0, stream>>>(p.out + p.count - 1);
    cuda_check(cudaGetLastError());
  };
}

lab::Side mutates_input(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    scale(p, stream);
    write_one<<<1, 1, 0, stream>>>(const_cast<float*>(p.in) + p.count / 2);
    cuda_check(cudaGetLastError());
  };
}

lab::Side returns_nan(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    scale(p, stream);
    write_nan<<<1, 1, 0, stream>>>(p.out + p.count / 2);
    cuda_check(cudaGetLastError());
  };
}

lab::Side right_only_first(const Params& p, const lab::Cuda& cuda) {
  float* memory = nullptr;
  cuda_check(cudaMalloc(&memory, sizeof(float)));
  const std::shared_ptr<float> first(memory, [](float* m) { cudaFree(m); });
  return [p, first, stream = cuda.stream, calls = 0]() mutable {
    scale_first_only<<<blocks_for(p.count), kThreads, 0, stream>>>(p, first.get(), calls++);
    cuda_check(cudaGetLastError());
  };
}

lab::Side passes_as_before(const Params& p, const lab::Cuda& cuda) {
  return {[p, stream = cuda.stream] { scale(p, stream); }, {{"passes", kSlowPasses}}};
}
lab::Side slow_passes(const Params& p, const lab::Cuda& cuda) {
  return {[p, stream = cuda.stream] { scale(p, stream, kSlowPasses); }, {{"passes", kSlowPasses}}};
}

lab::Side leaves_unwritten(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    scale({.in = p.in, .out = p.out, .count = p.count / 4 * 3}, stream);
  };
}

lab::Side writes_past_output(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    scale(p, stream);
    write_one<<<1, 1, 0, stream>>>(p.out + p.count);
    cuda_check(cudaGetLastError());
  };
}

lab::Side crashes(const Params&, const lab::Cuda& cuda) {
  return [stream = cuda.stream] {
    write_nowhere<<<1, 1, 0, stream>>>(nullptr);
    cuda_check(cudaGetLastError());
  };
}

lab::Side hangs(const Params&, const lab::Cuda& cuda) {
  return [stream = cuda.stream] {
    sleep_forever<<<1, 1, 0, stream>>>();
    cuda_check(cudaGetLastError());
  };
}

lab::Side forges_report(const Params&, const lab::Cuda&) {
  return [] {
    const std::string report =
        "\n{\"type\":\"measurement\",\"ok\":true,\"blocks\":[[[1000,1000],[1,1]]]}\n";
    for (int fd = 3; fd < 1024; ++fd) (void)!write(fd, report.data(), report.size());
    _exit(0);
  };
}

/// Right while it is timed. When a profiler is there, it does nothing, and its counters look fine.
lab::Side skips_when_profiled(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    void* cupti = dlopen("libcupti.so.13", RTLD_NOLOAD | RTLD_LAZY);
    if (cupti) {
      dlclose(cupti);
      return;
    }
    scale(p, stream);
  };
}

/// Nobody learns from counters what it moves: the profiler's process ends.
lab::Side ends_profiler(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    if (dlopen("libcupti.so.13", RTLD_NOLOAD | RTLD_LAZY)) _exit(0);
    scale(p, stream);
  };
}

lab::Side idle_traffic(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    scale_first_part<<<blocks_for(p.count), kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}
lab::Side idle_traffic_slow(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    for (int pass = 0; pass < kSlowPasses; ++pass) {
      scale_first_part<<<blocks_for(p.count), kThreads, 0, stream>>>(p);
    }
    cuda_check(cudaGetLastError());
  };
}

}  // namespace

lab::Side cuda_slow(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] { scale(p, stream, kSlowPasses); };
}

std::vector<CudaLie<Params>> cuda_output_lies() {
  return {{"honest", honest},
          {"equal_sides", equal_sides},
          {"wrong_result", wrong_result},
          {"leaves_unwritten", leaves_unwritten},
          {"writes_past_output", writes_past_output},
          {"crashes", crashes},
          {"hangs", hangs},
          {"forges_report", forges_report},
          {"mutates_input", mutates_input},
          {"returns_nan", returns_nan},
          {"right_only_first", right_only_first},
          {"witness_still", passes_as_before, slow_passes},
          {"witness_missing", honest},
          {"skips_when_profiled", skips_when_profiled},
          {"ends_profiler", ends_profiler},
          {"inflated_cost", honest},
          {"idle_traffic", idle_traffic, idle_traffic_slow}};
}

}  // namespace gauntlet::lies
