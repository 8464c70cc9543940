// One thread per particle, an array of structs: neighbouring lanes are 32 bytes apart, so each of
// the four loads touches a sector per lane, and positions and charges come along.
#include <cuda_runtime.h>

#include "catalog/ch07/aos_to_soa/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::aos_to_soa::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) kinetic_energy(Params p) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= p.count) return;
  const float vx = p.particles[i].vx;
  const float vy = p.particles[i].vy;
  const float vz = p.particles[i].vz;
  const float mass = p.particles[i].mass;
  p.energy[i] = 0.5f * mass * (vx * vx + vy * vy + vz * vz);
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return {[p, stream = cuda.stream] {
            const auto blocks = static_cast<unsigned>((p.count + kThreads - 1) / kThreads);
            kinetic_energy<<<blocks, kThreads, 0, stream>>>(p);
            cuda_check(cudaGetLastError());
          },
          {{"conversion_bytes", 0}}};
}

}  // namespace gauntlet::ch07::aos_to_soa::cuda
