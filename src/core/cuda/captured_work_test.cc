#include "core/cuda/captured_work.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/cuda/device.h"
#include "core/cuda/memory.h"
#include "core/cuda/registered_pages.h"
#include "core/cuda/stream_mark.h"

namespace gauntlet {
namespace {

class CopiesOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (const GpuQuery query = query_gpus(); query.gpus.empty()) GTEST_SKIP() << query.reason;
  }
};

TEST_F(CopiesOnGpu, are_counted_and_not_run_where_they_are_captured) {
  const CudaStream stream;
  const PinnedMemory host(8);
  const DeviceMemory device(8);
  host.data()[0] = 1;
  cuda_check(cudaMemset(device.data(), 7, 8));
  const auto twice = [&] {
    for (int i = 0; i < 2; ++i) {
      cuda_check(cudaMemcpyAsync(device.data(), host.data(), 8, cudaMemcpyDefault, stream));
    }
    cuda_check(cudaMemsetAsync(device.data(), 3, 8, stream));
  };
  EXPECT_EQ(captured_copies(stream, twice), 2);
  EXPECT_EQ(captured_copies(stream, [] {}), 0);
  std::uint8_t first = 0;
  cuda_check(cudaMemcpy(&first, device.data(), 1, cudaMemcpyDeviceToHost));
  EXPECT_EQ(first, 7);
}

TEST_F(CopiesOnGpu, are_from_page_locked_memory_where_pages_are_registered) {
  const RegisteredPages registered(1 << 20);
  const HugePages ordinary(1 << 20);
  EXPECT_EQ(page_locked(registered.data()), 1);
  EXPECT_EQ(page_locked(ordinary.data()), 0);
}

TEST_F(CopiesOnGpu, wait_for_what_another_stream_was_given_before_a_mark) {
  constexpr std::int64_t kBytes = 64 << 20;
  const CudaStream first, second;
  const DeviceMemory from(kBytes), to(kBytes);
  const StreamMark mark;
  mark.hold(second);  // nothing was marked yet
  cuda_check(cudaDeviceSynchronize());
  for (int round = 1; round <= 10; ++round) {
    cuda_check(cudaMemsetAsync(from.data(), round, kBytes, first));
    mark.set(first);
    mark.hold(second);
    cuda_check(cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDeviceToDevice, second));
    second.wait();
    std::uint8_t last = 0;
    cuda_check(cudaMemcpy(&last, to.data() + kBytes - 1, 1, cudaMemcpyDeviceToHost));
    ASSERT_EQ(last, round);
  }
}

}  // namespace
}  // namespace gauntlet
