#include "lab/measure/buffer_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "lab/measure/fake_backend.h"

namespace gauntlet::lab::inline measure {
namespace {

class BufferSetTest : public testing::Test {
 protected:
  BufferSetTest()
      : target_(twice_target()), knobs_(Knobs::defaults(target_.pair.knobs, BackendKind::cuda)) {}

  static const TwiceParams& params(const BufferSet& set) {
    return *static_cast<const TwiceParams*>(set.params());
  }
  static std::vector<float> inputs(const BufferSet& set) {
    return {params(set).in, params(set).in + params(set).n};
  }

  Target target_;
  Knobs knobs_;
  FakeBackend backend_;
};

TEST_F(BufferSetTest, takes_its_sizes_from_the_knobs_and_gives_memory_back) {
  {
    const BufferSet set(target_, knobs_, backend_);
    EXPECT_EQ(params(set).n, 500);
    EXPECT_EQ(set.bytes(), 2 * 500 * 4);
    EXPECT_EQ(backend_.live_buffers(), 2u);
  }
  EXPECT_EQ(backend_.live_buffers(), 0u);
}

TEST_F(BufferSetTest, surrounds_each_buffer_with_guards) {
  const BufferSet set(target_, knobs_, backend_);
  for (const BufferSet::Buffer& buffer : set.buffers()) {
    EXPECT_EQ(buffer.data, buffer.base + BufferSet::kGuardBytes);
    const auto is_guard = [](unsigned char b) { return b == BufferSet::kGuardByte; };
    EXPECT_TRUE(std::all_of(buffer.base, buffer.data, is_guard));
    const unsigned char* end = buffer.data + buffer.bytes;
    EXPECT_TRUE(std::all_of(end, end + BufferSet::kGuardBytes, is_guard));
  }
}

TEST_F(BufferSetTest, fills_inputs_and_their_reference_from_the_seed) {
  BufferSet set(target_, knobs_, backend_), other(target_, knobs_, backend_);
  set.fill(7);
  other.fill(7);
  EXPECT_EQ(set.seed(), 7u);
  EXPECT_EQ(inputs(set), inputs(other));
  const auto expected_of = [](const BufferSet& of) {
    const auto& values = of.reference().outputs().at("out").values;
    return std::vector<double>(values.begin(), values.end());
  };
  const std::vector<double> expected = expected_of(set);
  ASSERT_EQ(expected.size(), 500u);
  for (std::size_t i = 0; i < 500; ++i)
    EXPECT_EQ(expected[i], 2.0 * static_cast<double>(inputs(set)[i]));
  other.fill(8);
  EXPECT_NE(inputs(set), inputs(other));
  EXPECT_NE(expected, expected_of(other));
}

TEST_F(BufferSetTest, fills_in_place_so_that_sides_keep_their_addresses) {
  BufferSet set(target_, knobs_, backend_);
  const float* before = params(set).in;
  set.fill(1);
  set.fill(2);
  EXPECT_EQ(params(set).in, before);
}

TEST_F(BufferSetTest, gives_each_input_values_of_its_own) {
  target_.pair.bind = [](Binder& b) -> std::shared_ptr<const void> {
    return std::make_shared<const std::pair<const float*, const float*>>(
        b.input<float>("a", 100, Fill::uniform()), b.input<float>("b", 100, Fill::uniform()));
  };
  target_.pair.reference = [](const auto&, Reference&) {};
  BufferSet set(target_, knobs_, backend_);
  set.fill(1);
  EXPECT_FALSE(std::ranges::equal(set.buffers()[0].host, set.buffers()[1].host));
}

TEST_F(BufferSetTest, fills_random_bytes_to_the_end_of_wide_elements) {
  target_.pair.bind = [](Binder& b) -> std::shared_ptr<const void> {
    b.input<std::uint64_t>("wide", 64, Fill::bytes());
    return std::make_shared<const int>(0);
  };
  target_.pair.reference = [](const auto&, Reference&) {};
  BufferSet set(target_, knobs_, backend_);
  set.fill(1);
  const auto& host = set.buffers()[0].host;
  ASSERT_EQ(host.size(), 512u);
  EXPECT_TRUE(std::any_of(host.end() - 8, host.end(), [](unsigned char b) { return b != 0; }));
}

TEST_F(BufferSetTest, zeroes_an_input_that_is_constant) {
  target_.pair.bind = [](Binder& b) -> std::shared_ptr<const void> {
    b.input<std::int32_t>("zero", 64, Fill::constant_zero());
    return std::make_shared<const int>(0);
  };
  target_.pair.reference = [](const auto&, Reference&) {};
  BufferSet set(target_, knobs_, backend_);
  std::fill_n(set.buffers()[0].data, set.buffers()[0].bytes, std::uint8_t{9});
  set.fill(1);
  const unsigned char* data = set.buffers()[0].data;
  EXPECT_TRUE(std::all_of(data, data + 256, [](unsigned char b) { return b == 0; }));
}

TEST_F(BufferSetTest, gives_the_reference_host_inputs_and_no_outputs) {
  const float* seen_in = nullptr;
  float* seen_out = reinterpret_cast<float*>(1);
  target_.pair.reference = [&](const std::shared_ptr<const void>& p, Reference& r) {
    seen_in = static_cast<const TwiceParams*>(p.get())->in;
    seen_out = static_cast<const TwiceParams*>(p.get())->out;
    r.values("out", {});
  };
  BufferSet set(target_, knobs_, backend_);
  set.fill(1);
  EXPECT_EQ(static_cast<const void*>(seen_in), set.buffers()[0].host.data());
  EXPECT_EQ(seen_out, nullptr);
}

TEST_F(BufferSetTest, poisons_outputs_and_nothing_else) {
  BufferSet set(target_, knobs_, backend_);
  set.fill(1);
  const std::vector<float> before = inputs(set);
  set.poison_outputs();
  EXPECT_EQ(inputs(set), before);
  for (std::int64_t i = 0; i < params(set).n; ++i) EXPECT_TRUE(std::isnan(params(set).out[i]));
}

TEST_F(BufferSetTest, resets_where_the_pair_says_how) {
  BufferSet plain(target_, knobs_, backend_);
  plain.reset();
  int resets = 0;
  target_.pair.reset = [&](const auto&) { ++resets; };
  BufferSet set(target_, knobs_, backend_);
  set.reset();
  EXPECT_EQ(resets, 1);
}

TEST_F(BufferSetTest, faults_an_empty_buffer_and_a_changing_bind) {
  target_.pair.bind = [](Binder& b) -> std::shared_ptr<const void> {
    b.output<float>("none", 0);
    return nullptr;
  };
  EXPECT_THROW(BufferSet(target_, knobs_, backend_), Fault);
  int calls = 0;
  target_.pair.bind = [&](Binder& b) -> std::shared_ptr<const void> {
    b.input<float>(++calls == 1 ? "a" : "b", 4, Fill::uniform());
    return nullptr;
  };
  BufferSet set(target_, knobs_, backend_);
  EXPECT_THROW(set.fill(1), Fault);
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
