#include "core/cuda/cublas.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/cuda/check.h"

namespace gauntlet {
namespace {

TEST(Cublas, names_the_library_when_it_is_missing) {
  const auto opened = Cublas::open({.names = {"libcublas.so.0"}, .folders = {"/nowhere/lib64"}});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("libcublas.so.0 not found"), std::string::npos)
      << opened.error().message;
}

TEST(Cublas, names_the_function_that_another_library_lacks) {
  const auto opened = Cublas::open({.names = {"libm.so.6"}});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("cublasCreate_v2"), std::string::npos)
      << opened.error().message;
}

class DeviceFloats {
 public:
  explicit DeviceFloats(const std::vector<float>& values) : count_(values.size()) {
    cuda_check(cudaMalloc(&data_, count_ * sizeof(float)));
    cuda_check(cudaMemcpy(data_, values.data(), count_ * sizeof(float), cudaMemcpyHostToDevice));
  }
  ~DeviceFloats() { cudaFree(data_); }
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;

  void* data() const { return data_; }
  std::vector<float> read() const {
    std::vector<float> values(count_);
    cuda_check(cudaMemcpy(values.data(), data_, count_ * sizeof(float), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  std::size_t count_;
  void* data_ = nullptr;
};

TEST(CublasOnGpu, multiplies_row_major_matrices_however_they_are_stored) {
  auto cublas = Cublas::open();
  if (!cublas) GTEST_SKIP() << cublas.error().message;
  constexpr std::int64_t m = 2, n = 3, k = 4, batch = 2;
  const auto a = [](std::int64_t row, std::int64_t i) {
    return static_cast<float>(1 + row * 5 + i);
  };
  const auto b = [](std::int64_t i, std::int64_t column) {
    return static_cast<float>(i * i - 3 * column);
  };
  for (const Stored a_stored : {Stored::as_is, Stored::transposed}) {
    for (const Stored b_stored : {Stored::as_is, Stored::transposed}) {
      std::vector<float> a_values(batch * m * k), b_values(batch * k * n), expected(batch * m * n);
      for (std::int64_t product = 0; product < batch; ++product) {
        const auto scale = static_cast<float>(product + 1);
        for (std::int64_t i = 0; i < k; ++i) {
          for (std::int64_t row = 0; row < m; ++row) {
            const auto at = a_stored == Stored::as_is ? row * k + i : i * m + row;
            a_values[product * m * k + at] = scale * a(row, i);
          }
          for (std::int64_t column = 0; column < n; ++column) {
            const auto at = b_stored == Stored::as_is ? i * n + column : column * k + i;
            b_values[product * k * n + at] = b(i, column);
            for (std::int64_t row = 0; row < m; ++row) {
              expected[product * m * n + row * n + column] += scale * a(row, i) * b(i, column);
            }
          }
        }
      }
      const DeviceFloats a_device(a_values), b_device(b_values);
      const Gemm gemm = {.m = m,
                         .n = n,
                         .k = k,
                         .a = a_device.data(),
                         .b = b_device.data(),
                         .a_stored = a_stored,
                         .b_stored = b_stored};
      const auto first_product = std::vector(expected.begin(), expected.begin() + m * n);
      const auto result_of = [&](auto multiply) {
        const DeviceFloats c_device(std::vector<float>(batch * m * n));
        Gemm into = gemm;
        into.c = c_device.data();
        multiply(into);
        cuda_check(cudaDeviceSynchronize());
        return c_device.read();
      };
      const auto sgemm = result_of([&](const Gemm& g) { (*cublas)->sgemm(g); });
      EXPECT_TRUE(std::equal(first_product.begin(), first_product.end(), sgemm.begin()));
      const auto gemm_ex = result_of([&](const Gemm& g) { (*cublas)->gemm(g); });
      EXPECT_TRUE(std::equal(first_product.begin(), first_product.end(), gemm_ex.begin()));
      const auto batched = result_of([&](const Gemm& g) {
        (*cublas)->gemm_batched(
            {.first = g, .count = batch, .stride_a = m * k, .stride_b = k * n, .stride_c = m * n});
      });
      EXPECT_EQ(batched, expected);
    }
  }
}

TEST(CublasSearch, looks_beside_the_executable_after_the_toolkit) {
  const auto search = cublas_search();
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  ASSERT_FALSE(search.folders.empty());
  EXPECT_EQ(search.folders.back(), here);
  EXPECT_NE(std::find(search.folders.begin(), search.folders.end(), "/usr/local/cuda/lib64"),
            search.folders.end());
}

}  // namespace
}  // namespace gauntlet
