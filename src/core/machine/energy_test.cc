// Are counters of energy found, added up and carried over their highest value?
#include "core/machine/energy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/machine/nvml.h"
#include "core/os/fake_tree.h"

namespace gauntlet {
namespace {

using testing::HasSubstr;

struct RaplCounters : testing::Test {
  FakeTree tree;

  void zone(const std::string& folder, const std::string& name, const std::string& microjoules) {
    const std::string path = "/sys/class/powercap/" + folder;
    tree.write(path + "/name", name + "\n");
    tree.write(path + "/energy_uj", microjoules + "\n");
    tree.write(path + "/max_energy_range_uj", "10000000\n");
  }
  Expected<EnergyMeter> meter() const { return EnergyMeter::of_cpu(SystemFiles(tree.root())); }
};

TEST_F(RaplCounters, add_up_packages_and_memory_but_not_what_is_inside_a_package) {
  zone("intel-rapl:0", "package-0", "5000000");
  zone("intel-rapl:0:0", "core", "1000000");
  zone("intel-rapl:0:1", "dram", "2000000");
  const auto found = meter();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->source(), "RAPL: package-0, dram");
  EXPECT_DOUBLE_EQ(*found->joules(), 0);
  zone("intel-rapl:0", "package-0", "8000000");
  zone("intel-rapl:0:0", "core", "3000000");
  zone("intel-rapl:0:1", "dram", "2500000");
  EXPECT_DOUBLE_EQ(*found->joules(), 3.5);
}

TEST_F(RaplCounters, go_on_where_a_counter_turns_over) {
  zone("intel-rapl:0", "package-0", "9000000");
  const auto found = meter();
  zone("intel-rapl:0", "package-0", "1000000");
  EXPECT_DOUBLE_EQ(*found->joules(), 2);
  zone("intel-rapl:0", "package-0", "1500000");
  EXPECT_DOUBLE_EQ(*found->joules(), 2.5);
}

TEST_F(RaplCounters, say_why_there_are_none) {
  EXPECT_THAT(meter().error().message, HasSubstr("no counter of energy"));
  tree.write("/sys/class/powercap/intel-rapl:0/name", "package-0\n");
  EXPECT_THAT(meter().error().message, HasSubstr("energy_uj cannot be read"));
}

TEST(PowerIntegrals, count_the_mean_power_between_two_moments) {
  PowerIntegral integral;
  EXPECT_DOUBLE_EQ(integral.add(10, 100), 0);
  EXPECT_DOUBLE_EQ(integral.add(12, 200), 300);
  EXPECT_DOUBLE_EQ(integral.add(13, 200), 500);
}

TEST(GpuEnergy, needs_a_driver) {
  if (Nvml::open()) GTEST_SKIP() << "this machine has an NVIDIA driver";
  EXPECT_FALSE(EnergyMeter::of_gpu("GPU-0"));
}

}  // namespace
}  // namespace gauntlet
