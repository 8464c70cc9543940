#include "kernels/cuda/product/prefill_product.h"

#include <functional>
#include <vector>

#include "kernels/cuda/product/slot_case.h"

namespace gauntlet::kernels::cuda::inline product {
namespace {

using Case = SlotCase;
using Data = SlotData;

class PrefillProductOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
    if (!prefill_product_available()) GTEST_SKIP() << "the GPU has no wgmma (needs sm_90a)";
  }

  static void for_each_tile(const std::function<void(Case)>& use) {
    for (const auto format : {WeightFormat::bf16, WeightFormat::mxfp4}) {
      for (const PrefillTile& tile : kPrefillTiles) {
        use({.format = format,
             .tile = tile,
             .launch = [tile](const Product& product, const PrefillInput& input) {
               prefill_product(product, input, tile, {});
             }});
      }
    }
  }
};

constexpr Epilogue kEpilogues[] = {Epilogue::store_f32, Epilogue::store_bf16, Epilogue::add_f32,
                                   Epilogue::swiglu_bf16, Epilogue::weighted_f32};

TEST_F(PrefillProductOnGpu, multiplies_any_number_of_tokens) {
  for_each_tile([](Case c) {
    c.rows = 192;
    for (const std::int64_t cols : {64, 100, 128, 320}) {
      for (const int tokens : {1, 7, 64, 300}) {
        c.cols = cols;
        c.counts = {tokens};
        check_case(c);
      }
    }
  });
}

TEST_F(PrefillProductOnGpu, ends_with_every_epilogue) {
  for_each_tile([](Case c) {
    c.cols = 192;
    for (const Epilogue epilogue : kEpilogues) {
      for (const std::int64_t rows : {32, 200, 320}) {
        c.epilogue = epilogue;
        c.rows = epilogue == Epilogue::swiglu_bf16 ? (rows + 15) / 16 * 16 : rows;
        c.counts = {83};
        check_case(c);
      }
    }
  });
}

TEST_F(PrefillProductOnGpu, does_without_bias) {
  for_each_tile([](Case c) {
    c.rows = 64;
    c.cols = 64;
    c.counts = {20};
    c.has_bias = false;
    check_case(c);
  });
}

TEST_F(PrefillProductOnGpu, multiplies_each_experts_slots) {
  for_each_tile([](Case c) {
    const int n = c.tile.tokens;
    c.rows = 208;
    c.cols = 128;
    c.counts = {0, 1, n - 1, n, n + 1, 3 * n + n / 4, 0, n / 2, 2, 0};
    for (const Epilogue epilogue : kEpilogues) {
      c.epilogue = epilogue;
      check_case(c, n > 64 ? 3 : 1);
    }
    c.counts = {0, 0, 1};
    check_case(c);
  });
}

TEST_F(PrefillProductOnGpu, multiplies_large_matrices) {
  for_each_tile([](Case c) {
    c.rows = 2880;
    c.cols = 2880;
    c.counts = {300};
    check_case(c, 60);
    c.counts = {c.tile.tokens / 2 + 1, 2 * c.tile.tokens + 3};
    c.epilogue = Epilogue::swiglu_bf16;
    check_case(c, 90);
  });
}

TEST_F(PrefillProductOnGpu, repeats_bit_for_bit) {
  for_each_tile([](Case c) {
    SCOPED_TRACE(c.name());
    c.rows = 640;
    c.cols = 1920;
    c.counts = {300};
    const Data data(c);
    const auto first = run(c, data);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(run(c, data), first);
  });
}

TEST_F(PrefillProductOnGpu, gives_a_token_the_same_bits_in_any_company) {
  for_each_tile([](Case c) {
    SCOPED_TRACE(c.name());
    c.rows = 320;
    c.cols = 1920;
    c.counts = {300};
    const auto all = run(c, Data(c));
    Case other = c;
    other.reseeded_from = 5;
    const auto changed = run(other, Data(other));
    Case fewer = c;
    fewer.counts = {5};
    const auto few = run(fewer, Data(fewer));
    for (std::size_t i = 0; i < static_cast<std::size_t>(5 * c.out_stride()); ++i) {
      ASSERT_EQ(changed[i], all[i]) << i;
      ASSERT_EQ(few[i], all[i]) << i;
    }
  });
}

TEST_F(PrefillProductOnGpu, does_nothing_for_no_slots) {
  for_each_tile([](Case c) {
    c.rows = 64;
    c.cols = 64;
    c.counts = {0, 0, 0, 1};
    check_case(c);
  });
}

}  // namespace
}  // namespace gauntlet::kernels::cuda::inline product
