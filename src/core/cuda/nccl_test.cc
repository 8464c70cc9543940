#include "core/cuda/nccl.h"

#include <gmock/gmock.h>

#include <vector>

#include "core/cuda/graph.h"
#include "core/cuda/memory.h"
#include "core/ranks/thread_group.h"

namespace gauntlet {
namespace {

bool has_gpu() {
  int gpus = 0;
  return cudaGetDeviceCount(&gpus) == cudaSuccess && gpus > 0;
}

TEST(Nccl, names_the_library_when_it_is_missing) {
  const auto group = ranks::alone();
  const auto joined =
      NcclRanks::join(*group, {.names = {"libnccl.so.0"}, .folders = {"/nowhere/lib64"}});
  ASSERT_FALSE(joined);
  EXPECT_THAT(joined.error().message, testing::AnyOf(testing::HasSubstr("libnccl.so.0 not found"),
                                                     testing::HasSubstr("built without NCCL")));
}

TEST(Nccl, names_the_function_that_another_library_lacks) {
  const auto group = ranks::alone();
  const auto joined = NcclRanks::join(*group, {.names = {"libm.so.6"}});
  ASSERT_FALSE(joined);
  EXPECT_THAT(joined.error().message, testing::AnyOf(testing::HasSubstr("ncclGetVersion"),
                                                     testing::HasSubstr("built without NCCL")));
}

TEST(NcclOnGpu, sums_gathers_and_broadcasts_as_one_rank_eagerly_and_by_a_graph) {
  if (!has_gpu()) GTEST_SKIP() << "not tried: there is no CUDA device";
  const auto group = ranks::alone();
  auto joined = NcclRanks::join(*group);
  if (!joined) GTEST_SKIP() << joined.error().message;
  NcclRanks& nccl = **joined;
  EXPECT_EQ(nccl.size(), 1);
  EXPECT_EQ(nccl.failure(), "");
  EXPECT_THAT(nccl.version(), testing::StartsWith("2."));
  const std::vector<float> numbers = {1.5f, -2, 0.25f, 1e30f};
  const auto count = std::ssize(numbers);
  DeviceMemory own(count * 4), all(count * 4);
  const CudaStream stream;
  const auto enqueue = [&] {
    auto* values = reinterpret_cast<float*>(own.data());
    nccl.all_sum(values, count, stream);
    nccl.all_gather(values, count, reinterpret_cast<float*>(all.data()), stream);
    nccl.broadcast(all.data(), numbers.size() * 4, 0, stream);
  };
  const CudaGraph graph(stream, enqueue);
  EXPECT_GE(graph.num_nodes(), 1u) << "of one rank, NCCL copies what it gathers";
  const CudaGraphExec exec(graph);
  for (const bool by_graph : {false, true, true}) {
    cuda_check(cudaMemset(all.data(), 0, numbers.size() * 4));
    cuda_check(cudaMemcpy(own.data(), numbers.data(), numbers.size() * 4, cudaMemcpyHostToDevice));
    cuda_check(cudaDeviceSynchronize());
    if (by_graph) {
      exec.launch(stream);
    } else {
      enqueue();
    }
    stream.wait();
    std::vector<float> got(numbers.size());
    cuda_check(cudaMemcpy(got.data(), all.data(), numbers.size() * 4, cudaMemcpyDeviceToHost));
    EXPECT_EQ(got, numbers);
  }
}

TEST(NcclOnGpu, needs_as_many_gpus_as_ranks) {
  if (!has_gpu()) GTEST_SKIP() << "not tried: there is no CUDA device";
  std::string sentence;
  const auto done = ranks::run_threads(2, [&](ranks::Group& group) -> Expected<void> {
    cuda_check(cudaSetDevice(0));
    const auto joined = NcclRanks::join(group);
    if (joined) return Error{"two ranks joined on one GPU"};
    if (group.rank() == 0) sentence = joined.error().message;
    return group.barrier();
  });
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_THAT(sentence,
              testing::AnyOf("NCCL with 2 ranks needs 2 GPUs: ranks 0 and 1 have the same",
                             testing::HasSubstr("libnccl")));
}

}  // namespace
}  // namespace gauntlet
