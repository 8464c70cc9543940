#include "core/machine/nvml.h"

#include <gtest/gtest.h>

namespace gauntlet {
namespace {

using Names = std::vector<std::string>;

TEST(Nvml, says_what_is_missing_when_there_is_no_driver) {
  const auto nvml = Nvml::open();
  if (nvml) GTEST_SKIP() << "this machine has an NVIDIA driver";
  EXPECT_EQ(nvml.error().kind, ErrorKind::environment);
  EXPECT_NE(nvml.error().message.find("libnvidia-ml.so.1"), std::string::npos)
      << nvml.error().message;
  EXPECT_NE(nvml.error().message.find("driver"), std::string::npos) << nvml.error().message;
}

TEST(NvmlOnGpu, reads_a_plausible_state) {
  const auto nvml = Nvml::open();
  if (!nvml) GTEST_SKIP() << nvml.error().message;
  if ((*nvml)->device_count() == 0) GTEST_SKIP() << "NVML sees no GPU";
  const auto state = (*nvml)->state(0);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_GT(state->sm_clock_mhz, 100);
  EXPECT_LT(state->sm_clock_mhz, 5000);
  EXPECT_GT(state->temperature_c, 5);
  EXPECT_LT(state->temperature_c, 120);
  EXPECT_LT(state->power_w, 2000);
  const auto usage = (*nvml)->usage(0);
  ASSERT_TRUE(usage) << usage.error().message;
  ASSERT_TRUE(usage->memory_used_bytes && usage->memory_total_bytes);
  EXPECT_LE(*usage->memory_used_bytes, *usage->memory_total_bytes);
  EXPECT_GT(*usage->memory_total_bytes, 1e9);
  EXPECT_LE(usage->busy.value_or(0), 1);
  const auto energy = (*nvml)->energy_j(0);
  ASSERT_TRUE(energy) << energy.error().message;
  EXPECT_GE(energy->value_or(0), 0);
  const auto driver = (*nvml)->driver_version();
  ASSERT_TRUE(driver) << driver.error().message;
  EXPECT_NE(driver->find('.'), std::string::npos) << *driver;
  const auto processes = (*nvml)->foreign_processes(0);
  ASSERT_TRUE(processes) << processes.error().message;
  const auto outside = (*nvml)->state((*nvml)->device_count());
  EXPECT_FALSE(outside);
}

TEST(GpuSensors, tell_nothing_of_a_gpu_that_is_not_there) {
  EXPECT_FALSE(gpu_sensors("GPU-00000000-0000-0000-0000-000000000000")());
}

TEST(ThrottleReasons, names_each_bit_and_leaves_idle_out) {
  EXPECT_EQ(throttle_reasons(0), Names{});
  EXPECT_EQ(throttle_reasons(0x1), Names{});
  EXPECT_EQ(throttle_reasons(0x2), Names{"application clocks"});
  EXPECT_EQ(throttle_reasons(0x4), Names{"power cap"});
  EXPECT_EQ(throttle_reasons(0x8), Names{"hw slowdown"});
  EXPECT_EQ(throttle_reasons(0x10), Names{"sync boost"});
  EXPECT_EQ(throttle_reasons(0x20), Names{"sw thermal"});
  EXPECT_EQ(throttle_reasons(0x40), Names{"hw thermal"});
  EXPECT_EQ(throttle_reasons(0x80), Names{"hw power brake"});
  EXPECT_EQ(throttle_reasons(0x100), Names{"display clocks"});
}

TEST(ThrottleReasons, lists_several_in_bit_order_and_keeps_unknown_bits_visible) {
  EXPECT_EQ(throttle_reasons(0x4 | 0x8 | 0x40), (Names{"power cap", "hw slowdown", "hw thermal"}));
  EXPECT_EQ(throttle_reasons(0x1 | 0x200), Names{"bit 9"});
}

TEST(ThrottleReasons, counts_only_heat_as_thermal_slowdown) {
  EXPECT_TRUE(is_thermal_slowdown(0x20));
  EXPECT_TRUE(is_thermal_slowdown(0x40));
  EXPECT_TRUE(is_thermal_slowdown(0x4 | 0x8 | 0x40));
  EXPECT_FALSE(is_thermal_slowdown(0));
  // A generic hardware slowdown comes from a power brake as well as from heat.
  EXPECT_FALSE(is_thermal_slowdown(0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x80 | 0x100));
}

}  // namespace
}  // namespace gauntlet
