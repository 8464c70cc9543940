// src/ptx/tcgen05.cuh of an emulated GPU.
#pragma once
#include <cuda.h>

#include "ptx/address.cuh"
#include "ptx/tcgen05_descriptor.h"
#include "ptx/tensor_copy.cuh"

namespace gauntlet::ptx {

template <int kSms>
void tensor_memory_allocate(std::uint32_t* address, std::uint32_t columns) {
  emulated::Cluster::current().allocate(kSms, address, columns);
}

template <int kSms>
void tensor_memory_free(std::uint32_t address, std::uint32_t columns) {
  emulated::Cluster::current().release(kSms, address, columns);
}

template <int kSms>
void tcgen05_mma_tf32(std::uint32_t sums, std::uint64_t a, std::uint64_t b, std::uint32_t what,
                      int add) {
  emulated::Cluster::current().start_product({.sms = kSms,
                                              .kind = emulated::OperandKind::tf32,
                                              .sums = sums,
                                              .a = a,
                                              .b = b,
                                              .what = what,
                                              .add = add != 0});
}

template <int kSms>
void tcgen05_mma_f16(std::uint32_t sums, std::uint64_t a, std::uint64_t b, std::uint32_t what,
                     int add) {
  emulated::Cluster::current().start_product({.sms = kSms,
                                              .kind = emulated::OperandKind::f16,
                                              .sums = sums,
                                              .a = a,
                                              .b = b,
                                              .what = what,
                                              .add = add != 0});
}

inline void tcgen05_commit(std::uint64_t& barrier) {
  auto& cluster = emulated::Cluster::current();
  cluster.commit(1, shared_address(&barrier), 1u << cluster.rank());
}

inline void tcgen05_commit_pair(std::uint64_t& barrier, std::uint16_t blocks) {
  emulated::Cluster::current().commit(2, shared_address(&barrier), blocks);
}

inline void tcgen05_load_32(float (&d)[32], std::uint32_t address) {
  emulated::Cluster::current().load_sums(d, address);
}
inline void tcgen05_wait_load() { emulated::Cluster::current().wait_for_loads(); }

inline void tcgen05_fence_before_sync() { emulated::Cluster::current().fence_before_sync(); }
inline void tcgen05_fence_after_sync() { emulated::Cluster::current().fence_after_sync(); }

inline void tensor_load_2d_pair(void* shared, const CUtensorMap& map, TileOrigin origin,
                                std::uint32_t barrier) {
  emulated::Cluster::current().copy(2, shared_address(shared), map, origin.column, origin.row,
                                    barrier);
}

}  // namespace gauntlet::ptx
