// Are the facts of a GPU those of its driver, and the same object each time?
#include "kernels/cuda/device_facts.h"

#include "kernels/cuda/device_test.h"

namespace gauntlet::kernels::cuda {
namespace {

TEST(DeviceFactsOnGpu, are_those_of_the_driver_and_remembered) {
  GAUNTLET_NEEDS_GPU();
  cudaDeviceProp properties{};
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  const DeviceFacts& facts = device_facts();
  EXPECT_EQ(facts.num_sms, properties.multiProcessorCount);
  EXPECT_EQ(facts.most_shared_bytes, properties.sharedMemPerBlockOptin);
  EXPECT_EQ(facts.has_bulk_copies, properties.major == 9 && properties.minor == 0);
  EXPECT_EQ(&device_facts(), &facts);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace gauntlet::kernels::cuda
