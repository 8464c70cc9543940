#include "core/machine/numa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <cstring>

#include "core/os/fake_tree.h"

namespace gauntlet {
namespace {

using testing::HasSubstr;

/// Four nodes of two CPUs; from node 1 the third is farthest.
struct FourNodes {
  FakeTree tree;
  FourNodes() {
    tree.write("/sys/devices/system/node/has_cpu", "0-3\n");
    const char* distances[] = {"10 12 20 22", "12 10 32 20", "20 32 10 12", "22 20 12 10"};
    for (int node = 0; node < 4; ++node) {
      const std::string folder = "/sys/devices/system/node/node" + std::to_string(node);
      tree.write(folder + "/cpulist", std::to_string(2 * node) + "-" + std::to_string(2 * node + 1))
          .write(folder + "/distance", distances[node]);
    }
  }
  NumaTopology topology() const { return NumaTopology::read(SystemFiles(tree.root())); }
};

TEST(NumaTopology, knows_the_node_of_a_cpu) {
  const NumaTopology topology = FourNodes().topology();
  ASSERT_EQ(topology.nodes.size(), 4u);
  ASSERT_NE(topology.of_cpu(5), nullptr);
  EXPECT_EQ(topology.of_cpu(5)->id, 2);
  EXPECT_EQ(topology.of_cpu(8), nullptr);
}

TEST(NumaTopology, takes_the_farthest_node_by_distance) {
  const NumaTopology topology = FourNodes().topology();
  EXPECT_EQ(topology.farthest_from(0), 3);
  EXPECT_EQ(topology.farthest_from(1), 2);
  EXPECT_EQ(topology.farthest_from(9), std::nullopt);
}

TEST(NumaTopology, takes_the_next_node_where_distances_are_not_told) {
  FourNodes machine;
  // A node of memory alone makes five distances of four nodes.
  machine.tree.write("/sys/devices/system/node/node1/distance", "12 10 32 20 99");
  EXPECT_EQ(machine.topology().farthest_from(1), 2);
  EXPECT_EQ(machine.topology().farthest_from(3), 0);
}

TEST(NumaTopology, is_cut_down_to_the_nodes_of_some_cpus) {
  const NumaTopology cut = FourNodes().topology().of_cpus({2, 3, 5, 7});
  ASSERT_EQ(cut.nodes.size(), 3u);
  EXPECT_EQ(cut.of_cpu(5)->cpus, std::vector<int>{5});
  EXPECT_EQ(cut.of_cpu(4), nullptr);
  EXPECT_EQ(cut.of_cpu(2)->distances, (std::vector<int>{10, 32, 20}));
  EXPECT_EQ(cut.farthest_from(3), 1);
  EXPECT_EQ(cut.farthest_from(0), std::nullopt);
  EXPECT_TRUE(FourNodes().topology().of_cpus({8}).nodes.empty());
}

TEST(NumaPlaces, are_the_thread_s_own_node_and_the_farthest) {
  const auto places = places_of_cpu(FourNodes().topology(), 2);
  ASSERT_TRUE(places);
  EXPECT_EQ(places->local, 1);
  EXPECT_EQ(places->remote, 2);
}

TEST(NumaPlaces, say_why_there_are_none) {
  FakeTree one;
  one.write("/sys/devices/system/node/has_cpu", "0\n")
      .write("/sys/devices/system/node/node0/cpulist", "0-3\n")
      .write("/sys/devices/system/node/node0/distance", "10\n");
  const NumaTopology topology = NumaTopology::read(SystemFiles(one.root()));
  EXPECT_THAT(places_of_cpu(topology, 0).error().message, HasSubstr("one NUMA node"));
  EXPECT_THAT(places_of_cpu(topology, 7).error().message, HasSubstr("CPU 7"));
}

TEST(NodeOfPci, is_nothing_where_the_firmware_does_not_say) {
  FakeTree tree;
  tree.write("/sys/bus/pci/devices/0000:41:00.0/numa_node", "1\n")
      .write("/sys/bus/pci/devices/0000:42:00.0/numa_node", "-1\n");
  const SystemFiles files(tree.root());
  EXPECT_EQ(node_of_pci(files, "0000:41:00.0"), 1);
  EXPECT_EQ(node_of_pci(files, "0000:42:00.0"), std::nullopt);
  EXPECT_EQ(node_of_pci(files, "0000:43:00.0"), std::nullopt);
}

TEST(NodeOfPci, takes_the_address_as_the_driver_writes_it) {
  FakeTree tree;
  tree.write("/sys/bus/pci/devices/0000:c1:00.0/numa_node", "3\n");
  EXPECT_EQ(node_of_pci(SystemFiles(tree.root()), "0000:C1:00.0"), 3);
}

TEST(BindMemory, puts_pages_where_the_kernel_then_finds_them) {
  const NumaTopology topology = NumaTopology::read(SystemFiles());
  const NumaNode* here = topology.of_cpu(sched_getcpu());
  if (here == nullptr) GTEST_SKIP() << "this system shows no NUMA nodes";
  constexpr std::int64_t kBytes = 64 * 4096;
  void* data = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  const auto untouched = share_on_node(data, kBytes, here->id);
  const auto bound = bind_memory(data, kBytes, here->id);
  std::memset(data, 1, kBytes);
  const auto share = share_on_node(data, kBytes, here->id);
  const auto elsewhere = share_on_node(data, kBytes, here->id + 1);
  munmap(data, kBytes);
  if (!bound) GTEST_SKIP() << bound.error().message;
  if (!share) GTEST_SKIP() << share.error().message;
  EXPECT_FALSE(untouched) << "no page is there before it is touched";
  EXPECT_EQ(*share, 1);
  EXPECT_EQ(*elsewhere, 0);
}

TEST(BindMemory, says_what_refused_a_node_that_is_not_there) {
  alignas(4096) static char pages[2 * 4096];
  const auto bound = bind_memory(pages, sizeof(pages), 1000);
  ASSERT_FALSE(bound);
  EXPECT_THAT(bound.error().message, HasSubstr("node 1000"));
}

}  // namespace
}  // namespace gauntlet
