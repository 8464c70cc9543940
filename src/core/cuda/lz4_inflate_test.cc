#include "core/cuda/lz4_inflate.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/cuda/device.h"
#include "core/cuda/memory.h"
#include "core/storage/lz4_library.h"
#include "core/storage/lz4_samples.h"

namespace gauntlet {
namespace {

using Bytes = std::vector<unsigned char>;

TEST(Lz4InflateOnGpu, comes_to_what_the_cpu_comes_to_also_of_damaged_blocks) {
  if (const GpuQuery query = query_gpus(); query.gpus.empty()) GTEST_SKIP() << query.reason;
  if (const auto compiled = lz4_compiled(); !compiled) GTEST_SKIP() << compiled.error().message;
  constexpr std::int64_t kBlocks = 5000, kRoom = 700;
  constexpr unsigned char kUntouched = 0xee;
  Random random(3);
  Bytes compressed, expected(kBlocks * kRoom, kUntouched);
  std::vector<Lz4Place> places;
  std::vector<std::int64_t> came_to(kBlocks);
  int refused = 0;
  for (std::int64_t i = 0; i < kBlocks; ++i) {
    Bytes block = compress_lz4_block(lz4_sample_text(random, 1 + random.next_below(kRoom)));
    if (random.next_below(2) == 0) damage_lz4_block(random, block);
    // The places are not in the order of the outputs.
    const std::int64_t to = (i * 7) % kBlocks;
    places.push_back({.begin = static_cast<std::int64_t>(compressed.size()),
                      .bytes = static_cast<std::int64_t>(block.size()),
                      .block = to});
    compressed.insert(compressed.end(), block.begin(), block.end());
    came_to[static_cast<std::size_t>(to)] =
        decode_lz4_block(block, {expected.data() + to * kRoom, static_cast<std::size_t>(kRoom)});
    refused += came_to[static_cast<std::size_t>(to)] == kLz4Corrupt ? 1 : 0;
  }
  ASSERT_GT(refused, 100);
  const auto on_device = [](const void* data, std::size_t bytes) {
    DeviceMemory memory(static_cast<std::int64_t>(bytes));
    cuda_check(cudaMemcpy(memory.data(), data, bytes, cudaMemcpyHostToDevice));
    return memory;
  };
  const DeviceMemory in = on_device(compressed.data(), compressed.size());
  const DeviceMemory where = on_device(places.data(), places.size() * sizeof(Lz4Place));
  const DeviceMemory out(kBlocks * kRoom), counts(kBlocks * 8);
  cuda_check(cudaMemset(out.data(), kUntouched, expected.size()));
  const CudaStream stream;
  cuda_check(cudaDeviceSynchronize());
  inflate_lz4_blocks({.compressed = in.data(),
                      .places = reinterpret_cast<const Lz4Place*>(where.data()),
                      .count = kBlocks,
                      .out = out.data(),
                      .came_to = reinterpret_cast<std::int64_t*>(counts.data()),
                      .block_bytes = kRoom},
                     stream);
  stream.wait();
  Bytes got(expected.size());
  std::vector<std::int64_t> got_counts(kBlocks);
  cuda_check(cudaMemcpy(got.data(), out.data(), got.size(), cudaMemcpyDeviceToHost));
  cuda_check(cudaMemcpy(got_counts.data(), counts.data(), 8 * kBlocks, cudaMemcpyDeviceToHost));
  EXPECT_EQ(got_counts, came_to);
  EXPECT_EQ(got, expected);
}

}  // namespace
}  // namespace gauntlet
