// Where each SIMD level's table comes from; only the dispatch point asks.
#pragma once
#include "kernels/cpu/kernels.h"

namespace gauntlet::kernels::cpu {
namespace portable {
const KernelTable& table();
}
namespace avx2 {
const KernelTable& table();
}
namespace avx512 {
const KernelTable& table();
}
namespace avx512_bf16 {
const KernelTable& table();
}
namespace amx {
const KernelTable& table();
}
}  // namespace gauntlet::kernels::cpu
