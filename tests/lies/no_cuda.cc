// Without a CUDA toolkit no lie is told on a GPU.
#include "core/check.h"
#include "tests/lies/lie.h"

namespace gauntlet::lies {

std::vector<CudaLie<Params>> cuda_output_lies() { return {}; }
std::vector<CudaLie<Params>> cuda_reuse_lies() { return {}; }
std::vector<CudaLie<Params>> cuda_hidden_lies() { return {}; }
std::vector<CudaLie<Params>> cuda_late_lies() { return {}; }
std::vector<CudaLie<ProductParams>> cuda_product_lies() { return {}; }
lab::Side cuda_slow(const Params&, const lab::Cuda&) { fail("built without CUDA"); }
lab::Side cuda_product(const ProductParams&, const lab::Cuda&) { fail("built without CUDA"); }

}  // namespace gauntlet::lies
