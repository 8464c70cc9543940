// How a planted lie is declared: its name, its sides on each backend, and what it pretends.
#pragma once
#include <string>
#include <vector>

#include "lab/targets/target.h"
#include "tests/lies/params.h"

namespace gauntlet::lies {

template <class P>
using CpuFactory = lab::Side (*)(const P&, const lab::Cpu&);
template <class P>
using CudaFactory = lab::Side (*)(const P&, const lab::Cuda&);

/// Sides of one lie on a CPU or a GPU; null: it does not lie there.
template <class P>
struct CpuLie {
  std::string name;
  CpuFactory<P> optimized;
  CpuFactory<P> baseline = nullptr;  // null: the slow, honest one
};
template <class P>
struct CudaLie {
  std::string name;
  CudaFactory<P> optimized;
  CudaFactory<P> baseline = nullptr;
};

// Each file of sides lists its own.
std::vector<CpuLie<Params>> cpu_output_lies();
std::vector<CpuLie<Params>> cpu_process_lies();
std::vector<CpuLie<Params>> cpu_reuse_lies();
std::vector<CpuLie<Params>> cpu_hidden_lies();
std::vector<CpuLie<Params>> cpu_late_lies();
std::vector<CpuLie<Params>> cpu_state_lies();
std::vector<CpuLie<ProductParams>> cpu_product_lies();
lab::Side cpu_slow(const Params& p, const lab::Cpu&);
lab::Side cpu_product(const ProductParams& p, const lab::Cpu&);

// Empty without a CUDA toolkit.
std::vector<CudaLie<Params>> cuda_output_lies();
std::vector<CudaLie<Params>> cuda_reuse_lies();
std::vector<CudaLie<Params>> cuda_hidden_lies();
std::vector<CudaLie<Params>> cuda_late_lies();
std::vector<CudaLie<ProductParams>> cuda_product_lies();
lab::Side cuda_slow(const Params& p, const lab::Cuda&);
lab::Side cuda_product(const ProductParams& p, const lab::Cuda&);

}  // namespace gauntlet::lies
