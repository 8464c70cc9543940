// tcgen05: products of one SM's tensor cores, or of two SMs' together, with sums in tensor memory
// (sm_100a). kSms is 1 or 2; of a pair, the block of even rank issues what is issued once.
#pragma once
#include <cuda.h>

#include "ptx/address.cuh"
#include "ptx/tcgen05_descriptor.h"
#include "ptx/tensor_copy.cuh"

namespace gauntlet::ptx {

/// A warp asks for columns of tensor memory, a power of two from 32 to 512; their address is
/// written to shared memory. Of a pair both blocks ask.
template <int kSms>
__device__ __forceinline__ void tensor_memory_allocate(std::uint32_t* address,
                                                       std::uint32_t columns) {
  if constexpr (kSms == 1) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(
                     shared_address(address)),
                 "r"(columns)
                 : "memory");
  } else {
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(
                     shared_address(address)),
                 "r"(columns)
                 : "memory");
  }
}

/// The same warp gives them back; every block must before it ends.
template <int kSms>
__device__ __forceinline__ void tensor_memory_free(std::uint32_t address, std::uint32_t columns) {
  if constexpr (kSms == 1) {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address),
                 "r"(columns));
  } else {
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(address),
                 "r"(columns));
  }
}

/// sums = a·b, plus sums where `add` is not 0, by one thread; does not wait.
template <int kSms>
__device__ __forceinline__ void tcgen05_mma_tf32(std::uint32_t sums, std::uint64_t a,
                                                 std::uint64_t b, std::uint32_t what, int add) {
  if constexpr (kSms == 1) {
    asm volatile(
        "{\n"
        "  .reg .pred accumulate;\n"
        "  setp.ne.b32 accumulate, %4, 0;\n"
        "  tcgen05.mma.cta_group::1.kind::tf32 [%0], %1, %2, %3, accumulate;\n"
        "}\n" ::"r"(sums),
        "l"(a), "l"(b), "r"(what), "r"(add)
        : "memory");
  } else {
    asm volatile(
        "{\n"
        "  .reg .pred accumulate;\n"
        "  setp.ne.b32 accumulate, %4, 0;\n"
        "  tcgen05.mma.cta_group::2.kind::tf32 [%0], %1, %2, %3, accumulate;\n"
        "}\n" ::"r"(sums),
        "l"(a), "l"(b), "r"(what), "r"(add)
        : "memory");
  }
}

/// The same of bf16 or f16, as `what` says.
template <int kSms>
__device__ __forceinline__ void tcgen05_mma_f16(std::uint32_t sums, std::uint64_t a,
                                                std::uint64_t b, std::uint32_t what, int add) {
  if constexpr (kSms == 1) {
    asm volatile(
        "{\n"
        "  .reg .pred accumulate;\n"
        "  setp.ne.b32 accumulate, %4, 0;\n"
        "  tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, accumulate;\n"
        "}\n" ::"r"(sums),
        "l"(a), "l"(b), "r"(what), "r"(add)
        : "memory");
  } else {
    asm volatile(
        "{\n"
        "  .reg .pred accumulate;\n"
        "  setp.ne.b32 accumulate, %4, 0;\n"
        "  tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, accumulate;\n"
        "}\n" ::"r"(sums),
        "l"(a), "l"(b), "r"(what), "r"(add)
        : "memory");
  }
}

/// One arrival at the barrier once all products that this thread has issued are done.
__device__ __forceinline__ void tcgen05_commit(std::uint64_t& barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                   shared_address(&barrier))
               : "memory");
}

/// The same of a pair, at this barrier in every block whose bit is set.
__device__ __forceinline__ void tcgen05_commit_pair(std::uint64_t& barrier, std::uint16_t blocks) {
  asm volatile(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
      "[%0], %1;" ::"r"(shared_address(&barrier)),
      "h"(blocks)
      : "memory");
}

/// 32 columns of a warp's 32 rows, a row per lane; tcgen05_wait_load() comes before their use.
__device__ __forceinline__ void tcgen05_load_32(float (&d)[32], std::uint32_t address) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
      "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]),
        "=f"(d[7]), "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]), "=f"(d[12]), "=f"(d[13]),
        "=f"(d[14]), "=f"(d[15]), "=f"(d[16]), "=f"(d[17]), "=f"(d[18]), "=f"(d[19]), "=f"(d[20]),
        "=f"(d[21]), "=f"(d[22]), "=f"(d[23]), "=f"(d[24]), "=f"(d[25]), "=f"(d[26]), "=f"(d[27]),
        "=f"(d[28]), "=f"(d[29]), "=f"(d[30]), "=f"(d[31])
      : "r"(address)
      : "memory");
}

__device__ __forceinline__ void tcgen05_wait_load() {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

/// Around a barrier between threads that use tensor memory.
__device__ __forceinline__ void tcgen05_fence_before_sync() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
__device__ __forceinline__ void tcgen05_fence_after_sync() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

/// tensor_load_2d() whose bytes count towards a barrier of either block of a pair, by its address
/// in the cluster.
__device__ __forceinline__ void tensor_load_2d_pair(void* shared, const CUtensorMap& map,
                                                    TileOrigin origin, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::"
      "bytes"
      " [%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(origin.column), "r"(origin.row), "r"(barrier)
      : "memory");
}

}  // namespace gauntlet::ptx
