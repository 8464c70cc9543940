#include "core/cuda/cudnn_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/cuda/check.h"
#include "core/cuda/memory.h"
#include "core/narrow_floats.h"

namespace gauntlet {
namespace {

TEST(CudnnAttention, names_the_library_when_it_is_missing) {
  const auto opened =
      CudnnAttention::open({}, {.names = {"libcudnn.so.0"}, .folders = {"/nowhere/lib64"}});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("libcudnn.so.0 not found"), std::string::npos)
      << opened.error().message;
}

TEST(CudnnAttention, names_the_function_that_another_library_lacks) {
  const auto opened = CudnnAttention::open({}, {.names = {"libm.so.6"}, .folders = {}});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("cudnnCreate"), std::string::npos)
      << opened.error().message;
}

TEST(CudnnAttentionOnGpu, lets_a_query_see_the_keys_up_to_its_own) {
  constexpr std::int64_t kHeads = 2, kSequence = 256, kHeadDim = 64;
  constexpr std::int64_t kWords = kHeads * kSequence * kHeadDim;
  // All keys alike: an output is the mean of the values that its query sees.
  std::vector<Bf16> q(kWords, to_bf16(1)), k(kWords, to_bf16(0.5f)), v(kWords), out(kWords);
  for (std::int64_t i = 0; i < kWords; ++i) {
    v[static_cast<std::size_t>(i)] = to_bf16(static_cast<float>(i / kHeadDim % kSequence % 8));
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
  const DeviceMemory q_there(2 * kWords), k_there(2 * kWords), v_there(2 * kWords),
      out_there(2 * kWords);
  const auto copy = [](const DeviceMemory& to, const std::vector<Bf16>& from) {
    cuda_check(cudaMemcpy(to.data(), from.data(), from.size() * 2, cudaMemcpyHostToDevice));
  };
  copy(q_there, q);
  copy(k_there, k);
  copy(v_there, v);
  auto opened = CudnnAttention::open({.heads = kHeads,
                                      .sequence = kSequence,
                                      .head_dim = kHeadDim,
                                      .scale = 0.125f,
                                      .q = q_there.data(),
                                      .k = k_there.data(),
                                      .v = v_there.data(),
                                      .out = out_there.data()});
  if (!opened) GTEST_SKIP() << opened.error().message;
  EXPECT_GE((*opened)->version(), 90000);
  (*opened)->run(nullptr);
  cuda_check(cudaDeviceSynchronize());
  cuda_check(cudaMemcpy(out.data(), out_there.data(), out.size() * 2, cudaMemcpyDeviceToHost));
  for (std::int64_t row = 0; row < kHeads * kSequence; ++row) {
    const std::int64_t query = row % kSequence;
    double mean = 0;
    for (std::int64_t key = 0; key <= query; ++key) {
      mean += static_cast<double>(key % 8) / static_cast<double>(query + 1);
    }
    for (std::int64_t d = 0; d < kHeadDim; ++d) {
      EXPECT_NEAR(to_float(out[static_cast<std::size_t>(row * kHeadDim + d)]), mean, 0.02);
    }
  }
}

}  // namespace
}  // namespace gauntlet
