#include "core/machine/gpu_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/machine/gpu_driver.h"
#include "core/os/fake_tree.h"

namespace gauntlet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kGpu = "0000:C1:00.0";

/// Three nodes of two CPUs each; from node 1 the last one is the farthest. The GPU hangs on node 1.
struct ThreeNodes {
  FakeTree tree;
  ThreeNodes() {
    tree.write("/sys/devices/system/node/has_cpu", "0-2\n");
    const char* distances[] = {"10 12 20", "12 10 32", "20 32 10"};
    for (int node = 0; node < 3; ++node) {
      const std::string folder = "/sys/devices/system/node/node" + std::to_string(node);
      tree.write(folder + "/cpulist", std::to_string(2 * node) + "-" + std::to_string(2 * node + 1))
          .write(folder + "/distance", distances[node]);
    }
    hang_on("1\n");
  }
  void hang_on(const char* node) {
    tree.write("/sys/bus/pci/devices/0000:c1:00.0/numa_node", node);
  }
  Expected<GpuPlaces> places(const std::vector<int>& cpus = {0, 1, 2, 3, 4, 5}) const {
    return places_of_gpu(SystemFiles(tree.root()), kGpu, cpus);
  }
};

TEST(GpuPlaces, are_the_gpu_s_node_and_the_farthest_from_it) {
  const auto places = ThreeNodes().places();
  ASSERT_TRUE(places) << places.error().message;
  EXPECT_EQ(places->near.id, 1);
  EXPECT_THAT(places->near.cpus, ElementsAre(2, 3));
  EXPECT_EQ(places->far.id, 2);
  EXPECT_THAT(places->far.cpus, ElementsAre(4, 5));
}

TEST(GpuPlaces, are_none_that_this_process_may_not_run_on) {
  const auto places = ThreeNodes().places({0, 1, 3});
  ASSERT_TRUE(places) << places.error().message;
  EXPECT_THAT(places->near.cpus, ElementsAre(3));
  EXPECT_EQ(places->far.id, 0) << "the farthest is another cpuset's";
  EXPECT_THAT(places->far.cpus, ElementsAre(0, 1));
}

TEST(GpuPlaces, say_that_the_gpu_s_node_is_not_known) {
  ThreeNodes machine;
  machine.hang_on("-1\n");
  ASSERT_FALSE(machine.places());
  EXPECT_THAT(machine.places().error().message,
              HasSubstr("does not say which node GPU 0000:C1:00.0 hangs on"));
  const auto missing =
      places_of_gpu(SystemFiles(machine.tree.root()), "0000:05:00.0", {0, 1, 2, 3});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("GPU 0000:05:00.0"));
}

TEST(GpuPlaces, say_which_node_this_process_would_need) {
  const auto beside = ThreeNodes().places({0, 1, 4});
  ASSERT_FALSE(beside);
  EXPECT_THAT(beside.error().message, HasSubstr("hangs on node 1, and this process may run on "
                                                "none of its CPUs"));
  const auto alone = ThreeNodes().places({2, 3});
  ASSERT_FALSE(alone);
  EXPECT_THAT(alone.error().message, HasSubstr("may run on no other node"));
}

TEST(GpuPlaces, of_this_machine_are_two_or_a_reason) {
  const auto places = places_of_first_gpu();
  if (!places) {
    EXPECT_GT(places.error().message.size(), 20u) << places.error().message;
    return;
  }
  EXPECT_NE(places->near.id, places->far.id);
  EXPECT_FALSE(places->near.cpus.empty());
  EXPECT_FALSE(places->far.cpus.empty());
}

TEST(GpuPciAddress, is_that_of_a_device_or_a_reason) {
  const auto address = gpu_pci_address();
  if (!address) GTEST_SKIP() << address.error().message;
  EXPECT_THAT(*address, testing::MatchesRegex("[0-9A-Fa-f]+:[0-9A-Fa-f]+:[0-9A-Fa-f]+[.][0-7]"));
}

}  // namespace
}  // namespace gauntlet
