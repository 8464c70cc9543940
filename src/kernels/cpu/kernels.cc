// Which SIMD levels this machine has, and their tables.
#include "kernels/cpu/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "core/check.h"
#include "kernels/cpu/levels.h"

namespace gauntlet::kernels::cpu {
namespace {

#if defined(__x86_64__)
/// Whether the machine has tiles with products of bf16, and the system lets this process use them. Asked once: the answer holds for all threads.
bool grants_tiles() {
  static const bool granted = [] {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    constexpr unsigned kNeeded = 1u << 22 | 1u << 24;  // AMX-BF16 and AMX-TILE
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
    if ((edx & kNeeded) != kNeeded) return false;
    constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
    constexpr int kTileData = 18;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return granted;
}
#endif

}  // namespace

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
    case SimdLevel::amx:
      return "amx";
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
    if (levels.back() == SimdLevel::avx512_bf16 && grants_tiles()) levels.push_back(SimdLevel::amx);
  }
#endif
  return levels;
}

std::optional<SimdLevel> parse_level(std::string_view name) {
  for (const SimdLevel level : kSimdLevels) {
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
    case SimdLevel::amx:
      return amx::table();
#endif
    default:
      return portable::table();
  }
}

}  // namespace gauntlet::kernels::cpu
