// The GPU's probes, by what they load: device files list them, cuda_ceilings.cc times them.
#pragma once
#include <cstdint>
#include <vector>

#include "lab/ceilings/ceiling_probe.h"

struct CUstream_st;

namespace gauntlet::lab::inline ceilings {

/// What probes run with. The buffers hold random bits; their size is a multiple of kCudaGranule.
struct CudaSpace {
  CUstream_st* stream = nullptr;
  int num_sms = 0;
  int max_threads_per_sm = 0;
  int capability = 0;  // 90 for 9.0
  std::int64_t l2_bytes = 0;
  void* from = nullptr;
  void* to = nullptr;
  std::int64_t bytes = 0;  // of each
};
constexpr std::int64_t kCudaGranule = std::int64_t{1} << 20;

/// Random words of which only the bits in `keep` vary, the others being those of `set`.
struct RandomWords {
  std::uint32_t keep = ~0u;
  std::uint32_t set = 0;
};
/// Operands of a type: random signs and mantissas, magnitudes from 0.5 to below 2 (i8: any).
constexpr RandomWords kRandomBf16{0x80FF80FFu, 0x3F003F00u};
constexpr RandomWords kRandomF16{0x87FF87FFu, 0x38003800u};
constexpr RandomWords kRandomF32{0x80FFFFFFu, 0x3F000000u};
constexpr RandomWords kRandomF8e4m3{0x8F8F8F8Fu, 0x30303030u};
constexpr RandomWords kRandomI8{};
void fill_random(void* to, std::int64_t bytes, RandomWords words, CUstream_st* stream);

std::vector<Probe> cuda_dram_probes(const CudaSpace& space);
std::vector<Probe> cuda_bulk_probes(const CudaSpace& space);
std::vector<Probe> cuda_cache_probes(const CudaSpace& space);
std::vector<Probe> cuda_fma_probes(const CudaSpace& space);
/// These overwrite `space.from` with operands of their types.
std::vector<Probe> cuda_mma_probes(const CudaSpace& space);
std::vector<Probe> cuda_wgmma_probes(const CudaSpace& space);
/// Empty where cuBLASLt is not installed.
std::vector<Probe> cuda_cublas_probes(const CudaSpace& space);

}  // namespace gauntlet::lab::inline ceilings
