#include "lab/targets/needs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gauntlet::lab::inline targets {
namespace {

using testing::Contains;

TEST(Needs, have_names_that_mean_something) {
  for (const char* need :
       {"2 NUMA nodes",  "io_uring",       "O_DIRECT",     "huge pages", "2 ranks", "mpi",
        "nccl",          "rdma",           "gds",          "nvls",       "lz4",     "1 GPU",
        "8 GPUs",        "grace",          "sm_80",        "sm_90a",     "cublas",  "cudnn",
        "perf counters", "gauntlet-draft", "gpu numa node"}) {
    EXPECT_TRUE(is_need(need)) << need;
  }
  for (const char* need : {"", "sm_", "sm90", "sm_90b", "GPUs", "2 gpus", "0 GPUs", "0 ranks",
                           "NUMA nodes", "MPI", "io-uring", "<n> GPUs"}) {
    EXPECT_FALSE(is_need(need)) << need;
  }
  EXPECT_THAT(all_needs(), Contains("<n> NUMA nodes"));
  EXPECT_THAT(all_needs(), Contains("io_uring"));
}

TEST(Needs, have_their_number_read) {
  const auto hopper = numbered_need("sm_90a");
  ASSERT_TRUE(hopper);
  EXPECT_EQ(hopper->what, NumberedNeed::What::architecture);
  EXPECT_EQ(hopper->number, 90);
  EXPECT_TRUE(hopper->exactly);
  EXPECT_FALSE(numbered_need("sm_80")->exactly);
  EXPECT_EQ(numbered_need("12 ranks")->number, 12);
  EXPECT_EQ(numbered_need("12 ranks")->what, NumberedNeed::What::ranks);
  EXPECT_FALSE(numbered_need("mpi"));
}

TEST(Needs, are_a_gpus_alone_or_not) {
  for (const char* need : {"sm_80", "2 GPUs", "cublas", "nvls", "gpu numa node"}) {
    EXPECT_TRUE(is_gpu_need(need)) << need;
  }
  for (const char* need : {"2 ranks", "io_uring", "lz4", "mpi", "rdma", "perf counters"}) {
    EXPECT_FALSE(is_gpu_need(need)) << need;
  }
}

}  // namespace
}  // namespace gauntlet::lab::inline targets
