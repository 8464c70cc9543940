// Do the products of experts with some tokens each give what float64 gives, whatever the histogram?
#include "kernels/cuda/product/batch_mxfp4.h"

#include <functional>
#include <vector>

#include "kernels/cuda/product/slot_case.h"

namespace gauntlet::kernels::cuda::inline product {
namespace {

class BatchMxfp4OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
    if (!prefill_product_available()) GTEST_SKIP() << "the GPU has no wgmma (needs sm_90a)";
  }

  static void for_each_tile(const std::function<void(SlotCase)>& use) {
    for (const BatchTile& tile : kBatchTiles) {
      use({.format = WeightFormat::mxfp4,
           .tile = {.tokens = tile.most_width, .consumers = tile.stripes},
           .launch = [tile](const Product& product, const PrefillInput& input) {
             batch_mxfp4(product, input, tile, {});
           }});
    }
  }
};

constexpr Epilogue kEpilogues[] = {Epilogue::store_f32, Epilogue::swiglu_bf16,
                                   Epilogue::weighted_f32};

TEST_F(BatchMxfp4OnGpu, multiplies_each_experts_slots) {
  for_each_tile([](SlotCase c) {
    c.rows = 208;
    c.counts = {0, 1, 15, 16, 17, 33, 0, 49, 65, 96, 97, 129, 260, 0};
    for (const std::int64_t cols : {64, 100, 128, 320}) {
      c.cols = cols;
      for (const Epilogue epilogue : kEpilogues) {
        c.epilogue = epilogue;
        check_case(c, 7);
      }
    }
  });
}

TEST_F(BatchMxfp4OnGpu, multiplies_few_rows_and_few_slots) {
  for_each_tile([](SlotCase c) {
    c.cols = 64;
    for (const std::int64_t rows : {32, 64, 200, 320}) {
      c.rows = rows;
      c.counts = {0, 0, 1};
      check_case(c);
      c.counts = {3, 0, 20};
      c.has_bias = rows == 64;
      check_case(c);
      c.counts = {0, 0, 0};
      c.counts.push_back(1);
      check_case(c);
    }
  });
}

TEST_F(BatchMxfp4OnGpu, multiplies_large_matrices) {
  for_each_tile([](SlotCase c) {
    c.rows = 2880;
    c.cols = 2880;
    c.counts = {40, 0, 16, 100};
    check_case(c, 30);
    c.epilogue = Epilogue::swiglu_bf16;
    check_case(c, 60);
  });
}

TEST_F(BatchMxfp4OnGpu, has_the_bits_of_the_prefill_product) {
  for_each_tile([](SlotCase c) {
    SCOPED_TRACE(c.name());
    c.rows = 640;
    c.cols = 1920;
    c.counts = {7, 130, 0, 33, 64, 20, 1};
    const SlotData data(c);
    const auto first = run(c, data);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(run(c, data), first);
    c.launch = [](const Product& product, const PrefillInput& input) {
      prefill_product(product, input, {.tokens = 128, .consumers = 2}, {});
    };
    EXPECT_EQ(run(c, data), first);
  });
}

TEST_F(BatchMxfp4OnGpu, gives_a_token_the_same_bits_in_any_company) {
  for_each_tile([](SlotCase c) {
    SCOPED_TRACE(c.name());
    c.rows = 320;
    c.cols = 1920;
    c.counts = {300, 2};
    const auto all = run(c, SlotData(c));
    SlotCase other = c;
    other.reseeded_from = 5;
    const auto changed = run(other, SlotData(other));
    SlotCase fewer = c;
    fewer.counts = {5, 40};
    const auto few = run(fewer, SlotData(fewer));
    for (std::size_t i = 0; i < static_cast<std::size_t>(5 * c.out_stride()); ++i) {
      ASSERT_EQ(changed[i], all[i]) << i;
      ASSERT_EQ(few[i], all[i]) << i;
    }
  });
}

}  // namespace
}  // namespace gauntlet::kernels::cuda::inline product
