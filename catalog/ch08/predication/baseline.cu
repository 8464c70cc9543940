// One thread per target; pairs out of reach are skipped. A short body the compiler would predicate
// by itself, but this one holds a division, whose slow path is a call, and stays behind a branch.
#include <cuda_runtime.h>

#include "catalog/ch08/predication/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch08::predication::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void field(Params p) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= p.num_targets) return;
  const float x = p.targets[i];
  const float y = p.targets[p.num_targets + i];
  const float z = p.targets[2 * p.num_targets + i];
  const float4* sources = reinterpret_cast<const float4*>(p.sources);
  float fx = 0, fy = 0, fz = 0;
  for (std::int64_t j = 0; j < p.num_sources; ++j) {
    const float4 source = sources[j];
    const float dx = source.x - x, dy = source.y - y, dz = source.z - z;
    const float weight = source.w;
    const float r2 = dx * dx + dy * dy + dz * dz;
    if (r2 < p.cutoff2) {
      const float rest = p.cutoff2 - r2;
      const float w = rest * rest * (p.cutoff2 + 2 * r2) * (weight / (r2 + kSoftening2));
      fx += w * dx;
      fy += w * dy;
      fz += w * dz;
    }
  }
  const float scale = 1 / (p.cutoff2 * p.cutoff2 * p.cutoff2);
  p.out[3 * i] = fx * scale;
  p.out[3 * i + 1] = fy * scale;
  p.out[3 * i + 2] = fz * scale;
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const auto blocks = static_cast<unsigned>((p.num_targets + kThreads - 1) / kThreads);
    field<<<blocks, kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch08::predication::cuda
