// Which SIMD levels this machine has, and their tables.
#include "kernels/cpu/kernels.h"

#include "core/check.h"
#include "kernels/cpu/levels.h"

namespace gauntlet::kernels::cpu {

std::string_view name_of(SimdLevel level) {
  switch (level) {
    case SimdLevel::portable:
      return "portable";
    case SimdLevel::avx2:
      return "avx2";
    case SimdLevel::avx512:
      return "avx512";
    case SimdLevel::avx512_bf16:
      return "avx512-bf16";
  }
  return "?";
}

std::vector<SimdLevel> available_levels() {
  std::vector<SimdLevel> levels = {SimdLevel::portable};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    levels.push_back(SimdLevel::avx2);
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vnni")) {
    levels.push_back(SimdLevel::avx512);
    if (__builtin_cpu_supports("avx512bf16")) levels.push_back(SimdLevel::avx512_bf16);
  }
#endif
  return levels;
}

std::optional<SimdLevel> parse_level(std::string_view name) {
  for (const SimdLevel level :
       {SimdLevel::portable, SimdLevel::avx2, SimdLevel::avx512, SimdLevel::avx512_bf16}) {
    if (name_of(level) == name) return level;
  }
  return std::nullopt;
}

const KernelTable& kernels(SimdLevel level) {
  bool available = false;
  for (const SimdLevel has : available_levels()) available |= has == level;
  check(available, "this machine lacks the SIMD level asked for");
  switch (level) {
#if defined(__x86_64__)
    case SimdLevel::avx2:
      return avx2::table();
    case SimdLevel::avx512:
      return avx512::table();
    case SimdLevel::avx512_bf16:
      return avx512_bf16::table();
#endif
    default:
      return portable::table();
  }
}

}  // namespace gauntlet::kernels::cpu
