// src/ptx/mbarrier.cuh of an emulated GPU.
#pragma once
#include "ptx/address.cuh"

namespace gauntlet::ptx {

inline void mbarrier_init(std::uint64_t& barrier, std::uint32_t arrivals) {
  emulated::Cluster::current().init_barrier(shared_address(&barrier), arrivals);
}
inline void mbarrier_arrive(std::uint64_t& barrier) {
  emulated::Cluster::current().arrive(shared_address(&barrier), 0);
}
inline void mbarrier_arrive_expect_tx(std::uint64_t& barrier, std::uint32_t bytes) {
  emulated::Cluster::current().arrive(shared_address(&barrier), bytes);
}
/// Says nothing but yes: a thread that would poll waits.
inline bool mbarrier_try_wait(std::uint64_t& barrier, std::uint32_t parity) {
  emulated::Cluster::current().wait_for_phase(shared_address(&barrier), parity);
  return true;
}

}  // namespace gauntlet::ptx
