// Do pairs of several GPUs give the right words where one GPU stands in the place of all of them?
#include <gtest/gtest.h>

#include "lab/targets/catalog.h"

#ifdef GAUNTLET_HAVE_CUDA
#include <cuda_runtime_api.h>

#include <cmath>

#include "catalog/ch04/copy_engine_collectives/pair.h"
#include "catalog/ch04/nvls_collectives/pair.h"
#include "core/affine_rounds.h"
#include "core/cuda/device.h"
#include "core/cuda/memory.h"
#include "core/machine/gpu_driver.h"

namespace gauntlet::tests {
namespace {

template <class T>
class OnDeviceCopy {
 public:
  explicit OnDeviceCopy(const std::vector<T>& values)
      : memory_(static_cast<std::int64_t>(values.size() * sizeof(T))) {
    cuda_check(cudaMemcpy(memory_.data(), values.data(), values.size() * sizeof(T),
                          cudaMemcpyHostToDevice));
  }
  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  std::vector<T> values() const {
    std::vector<T> all(static_cast<std::size_t>(memory_.bytes()) / sizeof(T));
    cuda_check(
        cudaMemcpy(all.data(), memory_.data(), all.size() * sizeof(T), cudaMemcpyDeviceToHost));
    return all;
  }

 private:
  DeviceMemory memory_;
};

std::vector<std::uint32_t> random_words(std::int64_t count) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (std::uint32_t& word : words) word = state = affine_round(state, 1664525u);
  return words;
}

class SeveralGpusOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (const GpuQuery query = query_gpus(); query.gpus.empty()) GTEST_SKIP() << query.reason;
    stream_ = std::make_unique<CudaStream>();
  }
  /// A side of a target, by hand: not every chapter may be part of this build.
  lab::Side side(const char* id, std::size_t index, const void* params) {
    const lab::Target* target = catalog_.find(id);
    if (target == nullptr) return {[] {}, {{"missing", 1}}};
    return target->source.cuda[index].cuda(params, {.stream = *stream_});
  }
  void run(const lab::Side& side) {
    side.run();
    cuda_check(cudaDeviceSynchronize());
  }

  lab::Catalog catalog_ = lab::load_catalog();
  std::unique_ptr<CudaStream> stream_;
};

TEST_F(SeveralGpusOnGpu, gather_by_kernels_and_by_copy_engines) {
  namespace pair = ch04::copy_engine_collectives;
  for (const std::int64_t gpus : {2, 3}) {
    const std::int64_t words = 3 * pair::kChunks * pair::kBlockWords;
    const auto in = random_words(gpus * words), factor = random_words(pair::kRounds);
    AffineRounds rounds;
    for (const std::uint32_t f : factor) rounds.add(f);
    std::vector<std::uint32_t> expected(in.size());
    for (std::int64_t i = 0; i < std::ssize(in); ++i) {
      for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
        expected[static_cast<std::size_t>(i)] +=
            rounds(in[static_cast<std::size_t>(gpu * words + i % words)]);
      }
    }
    const OnDeviceCopy device_in(in), device_factor(factor);
    for (const std::size_t index : {0, 1}) {
      const OnDeviceCopy out(std::vector<std::uint32_t>(in.size(), 7));
      const pair::Params p{.in = device_in.data(),
                           .factor = device_factor.data(),
                           .out = out.data(),
                           .words = words,
                           .devices = std::vector<int>(static_cast<std::size_t>(gpus))};
      const lab::Side made = side("ch04:copy_engine_collectives", index, &p);
      if (made.facts.contains("missing")) GTEST_SKIP() << "chapter 4 is not part of this build";
      run(made);
      EXPECT_TRUE(out.values() == expected) << gpus << " GPUs, side " << index;
      const auto carried = static_cast<std::int64_t>(index) * pair::kChunks * gpus * (gpus - 1);
      EXPECT_EQ(made.facts.at("copies"), static_cast<double>(3 * gpus + carried));
    }
  }
}

TEST_F(SeveralGpusOnGpu, add_up_by_kernels_and_in_the_switch) {
  namespace pair = ch04::nvls_collectives;
  for (const std::int64_t gpus : {1, 2, 4}) {
    const std::int64_t words = 16 * pair::kPartWords;
    std::vector<float> in(static_cast<std::size_t>(gpus * words)), expected(in.size());
    const auto random = random_words(gpus * words);
    for (std::size_t i = 0; i < in.size(); ++i) {
      in[i] = static_cast<float>(random[i] >> 28) - 8;
    }
    const auto times = static_cast<float>(std::pow(gpus, pair::kSums - 1));
    for (std::int64_t i = 0; i < std::ssize(in); ++i) {
      for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
        expected[static_cast<std::size_t>(i)] +=
            times * in[static_cast<std::size_t>(gpu * words + i % words)];
      }
    }
    const OnDeviceCopy device_in(in);
    for (const std::size_t index : {0, 1}) {
      // Of multicast memory every place is another GPU.
      const auto multicast = gpu_attribute(GpuAttribute::multicast);
      if (index == 1 && (gpus > 1 || !multicast || *multicast == 0)) continue;
      const OnDeviceCopy out(std::vector<float>(in.size(), 7));
      const pair::Params p{.in = device_in.data(),
                           .out = out.data(),
                           .words = words,
                           .devices = std::vector<int>(static_cast<std::size_t>(gpus))};
      const lab::Side made = side("ch04:nvls_collectives", index, &p);
      if (made.facts.contains("missing")) GTEST_SKIP() << "chapter 4 is not part of this build";
      run(made);
      EXPECT_TRUE(out.values() == expected) << gpus << " GPUs, side " << index;
    }
  }
}

}  // namespace
}  // namespace gauntlet::tests
#endif
