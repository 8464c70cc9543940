// What the speeds of products share: random weights, slots as a router dispatches them, and some
// results summed anew on the host.
#pragma once
#include <cuda_bf16.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/cuda/speed.h"
#include "kernels/cuda/product/product.h"

namespace gauntlet::bench {

using kernels::cuda::Epilogue;
using kernels::cuda::Product;
using kernels::cuda::WeightFormat;

struct Work {
  const char* name;
  WeightFormat format;
  Epilogue epilogue;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t columns;
  int num_experts;
  float skew = 0;  // of the experts' log-probabilities: 0 is uniform routing

  double flop() const { return 2.0 * static_cast<double>(rows * cols * columns); }
};

/// Random and finite, read as bf16 numbers or as FP4 with scales: power depends on the bits that
/// toggle.
std::vector<std::uint16_t> random_bits(WeightFormat format, std::uint64_t seed);

/// The first slot of each expert: each column goes to a random one. One of all without experts.
std::vector<std::int32_t> dispatch(const Work& work);

/// Experts that got a slot; 1 of a plain product.
double active_experts(const Work& work);

/// Reports `launch`, which gets a product whose weights rotate.
Timed report_product(const Bench& bench, const Work& work, const std::string& kernel,
                     const std::string& remark,
                     const std::function<void(const Product&, const Launch&)>& launch);

/// One of several kernels for the same product.
struct ProductKernel {
  std::string name;
  std::function<void(const Product&, const Launch&)> launch;
};
struct ProductTime {
  double us = 0;
  std::uint64_t digest = 0;  // of all it stored
  std::string fault;         // what was wrong, if anything
};

/// Times all of them with the same weights and tokens; compares each with the definition.
std::vector<ProductTime> compare_products(const Bench& bench, const Work& work,
                                          const std::vector<ProductKernel>& kernels);

}  // namespace gauntlet::bench
