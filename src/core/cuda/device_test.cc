#include "core/cuda/device.h"

#include <gtest/gtest.h>

#include "core/cuda/no_device_reason.h"

namespace gauntlet {
namespace {

TEST(NoDeviceReason, tells_no_driver_from_an_old_driver_from_no_device) {
  EXPECT_EQ(no_device_reason(cudaErrorInsufficientDriver, 0, 13000),
            "no CUDA device (no NVIDIA driver is loaded)");
  EXPECT_EQ(no_device_reason(cudaErrorInsufficientDriver, 12020, 13000),
            "no CUDA device (the driver supports CUDA 12.2, this binary needs 13.0: update the "
            "driver)");
  EXPECT_NE(no_device_reason(cudaErrorNoDevice, 13000, 13000).find("CUDA_VISIBLE_DEVICES"),
            std::string::npos);
}

TEST(NoDeviceReason, gives_cudas_words_for_anything_else) {
  const std::string reason = no_device_reason(cudaErrorSystemNotReady, 13000, 13000);
  EXPECT_TRUE(reason.starts_with("no CUDA device (cudaErrorSystemNotReady: ")) << reason;
}

TEST(VersionText, splits_cudas_number) {
  EXPECT_EQ(version_text(13000), "13.0");
  EXPECT_EQ(version_text(12080), "12.8");
  EXPECT_EQ(version_text(0), "");
}

TEST(QueryGpus, has_devices_or_a_reason_and_never_both) {
  const GpuQuery query = query_gpus();
  EXPECT_EQ(query.gpus.empty(), query.reason.starts_with("no CUDA device"));
  EXPECT_FALSE(query.runtime.empty());
}

TEST(QueryGpusOnGpu, describes_every_device) {
  const GpuQuery query = query_gpus();
  if (query.gpus.empty()) GTEST_SKIP() << query.reason;
  for (const GpuInfo& gpu : query.gpus) {
    EXPECT_FALSE(gpu.name.empty());
    EXPECT_GT(gpu.num_sms, 0);
    EXPECT_GT(gpu.l2_bytes, 0);
    EXPECT_GT(gpu.memory_bytes, 0);
    EXPECT_EQ(gpu.uuid.size(), std::string("GPU-01234567-0123-0123-0123-0123456789ab").size());
  }
}

TEST(QueryGpusOnGpu, leaves_no_error_behind) {
  if (query_gpus().driver.empty()) {
    GTEST_SKIP() << "no NVIDIA driver: the runtime repeats that error on every call";
  }
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace gauntlet
