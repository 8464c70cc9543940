// Do the kernels for GPUs with tensor memory, as they stand in the catalogue, compute what they
// should on an emulated GPU: every bit, in whatever order its threads, copies and products come?
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "catalog/ch10/tcgen05_matmul/pair.h"
#include "catalog/ch10/tmem_triple_overlap/pair.h"
#include "catalog/labs/matmul_ladder_blackwell/lab.h"
#include "core/narrow_floats.h"
#include "core/random.h"
#include "lab/author/side.h"

namespace gauntlet {

namespace labs::matmul_ladder_blackwell::cuda {
lab::Side tcgen05(const Params& p, const lab::Cuda& cuda);
lab::Side paired(const Params& p, const lab::Cuda& cuda);
}  // namespace labs::matmul_ladder_blackwell::cuda
namespace ch10::tcgen05_matmul::cuda {
lab::Side baseline(const Params& p, const lab::Cuda& cuda);
lab::Side optimized(const Params& p, const lab::Cuda& cuda);
}  // namespace ch10::tcgen05_matmul::cuda
namespace ch10::tmem_triple_overlap::cuda {
lab::Side baseline(const Params& p, const lab::Cuda& cuda);
lab::Side optimized(const Params& p, const lab::Cuda& cuda);
}  // namespace ch10::tmem_triple_overlap::cuda

namespace tests {
namespace {

constexpr int kSeeds = 6;
constexpr std::size_t kGuard = 512;  // elements on either side of C

struct Shape {
  int m, n, k;
};

void narrow(int value, float& to) { to = static_cast<float>(value); }
void narrow(int value, Bf16& to) { to = to_bf16(static_cast<float>(value)); }

/// Whole numbers, of which every order of sums gives the same bits; and what C must be.
template <class Element>
struct Operands {
  Operands(Shape s, int most) : shape(s) {
    const auto rows = static_cast<std::size_t>(s.m), columns = static_cast<std::size_t>(s.n);
    const auto depth = static_cast<std::size_t>(s.k);
    Random random(7);
    const auto fill = [&](std::vector<int>& values, std::vector<Element>& narrowed) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] =
            static_cast<int>(random.next_below(2 * static_cast<std::uint64_t>(most) + 1)) - most;
        narrow(values[i], narrowed[i]);
      }
    };
    std::vector<int> whole_a(rows * depth), whole_b(columns * depth);
    a.resize(whole_a.size());
    b.resize(whole_b.size());
    fill(whole_a, a);
    fill(whole_b, b);
    c.resize(rows * columns);
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        int sum = 0;
        for (std::size_t i = 0; i < depth; ++i) {
          sum += whole_a[row * depth + i] * whole_b[column * depth + i];
        }
        narrow(sum, c[row * columns + column]);
      }
    }
  }

  Shape shape;
  std::vector<Element> a, b, c;
};

template <class Params, class Element>
void expect_product(lab::Side (*kernel)(const Params&, const lab::Cuda&),
                    const Operands<Element>& operands, int num_sms = 1) {
  Element unwritten;
  narrow(12345, unwritten);
  for (int seed = 0; seed < kSeeds; ++seed) {
    CUstream_st gpu{.random = Random(static_cast<std::uint64_t>(seed))};
    std::vector<Element> c(operands.c.size() + 2 * kGuard, unwritten);
    const auto [m, n, k] = operands.shape;
    kernel({.a = operands.a.data(),
            .b = operands.b.data(),
            .c = c.data() + kGuard,
            .m = m,
            .n = n,
            .k = k},
           {.stream = &gpu, .num_sms = num_sms})
        .run();
    ASSERT_EQ(gpu.fault, "") << "seed " << seed;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < c.size(); ++i) {
      const bool within = i >= kGuard && i < kGuard + operands.c.size();
      // Bits, so that nothing that is not a number is taken for another.
      const void *got = &c[i], *wanted = within ? &operands.c[i - kGuard] : &unwritten;
      wrong += std::memcmp(got, wanted, sizeof(Element)) == 0 ? 0 : 1;
    }
    ASSERT_EQ(wrong, 0u) << "elements of C or around it, seed " << seed;
  }
}

// Stages are used three times and more, the last time not all of them, and C has another number of
// tiles each way.

TEST(EmulatedBlackwell, multiplies_bf16_on_one_sm) {
  using namespace labs::matmul_ladder_blackwell;
  expect_product(cuda::tcgen05, Operands<Bf16>({384, 512, 13 * 64}, 8));
  expect_product(cuda::tcgen05, Operands<Bf16>({128, 256, 64}, 8));
}

TEST(EmulatedBlackwell, multiplies_bf16_on_pairs_of_sms) {
  using namespace labs::matmul_ladder_blackwell;
  expect_product(cuda::paired, Operands<Bf16>({512, 768, 13 * 64}, 8));
  expect_product(cuda::paired, Operands<Bf16>({256, 256, 64}, 8));
}

TEST(EmulatedBlackwell, multiplies_tf32_on_one_sm) {
  expect_product(ch10::tcgen05_matmul::cuda::baseline, Operands<float>({384, 512, 13 * 32}, 64));
}

TEST(EmulatedBlackwell, multiplies_tf32_on_pairs_of_sms) {
  expect_product(ch10::tcgen05_matmul::cuda::optimized, Operands<float>({512, 768, 13 * 32}, 64));
}

// Several tiles follow each other in a block: of 6, one block has all, or four share them unevenly.
TEST(EmulatedBlackwell, goes_through_tiles_with_one_place_for_sums) {
  const Operands<float> operands({384, 512, 3 * 32}, 64);
  expect_product(ch10::tmem_triple_overlap::cuda::baseline, operands);
  expect_product(ch10::tmem_triple_overlap::cuda::baseline, operands, 4);
}

TEST(EmulatedBlackwell, goes_through_tiles_with_two_places_for_sums) {
  const Operands<float> operands({384, 512, 3 * 32}, 64);
  expect_product(ch10::tmem_triple_overlap::cuda::optimized, operands);
  expect_product(ch10::tmem_triple_overlap::cuda::optimized, operands, 4);
}

}  // namespace
}  // namespace tests
}  // namespace gauntlet
