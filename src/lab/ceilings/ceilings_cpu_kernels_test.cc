#include "lab/ceilings/ceilings_cpu_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>

namespace gauntlet::lab::inline ceilings {
namespace {

constexpr std::size_t kBytes = 2 * kMoveGranule;
constexpr std::byte kGuard{0x11};

/// A page-aligned block with a guard page on each side.
struct Guarded {
  alignas(kMoveGranule) std::byte pages[kBytes + 2 * kMoveGranule];

  Guarded() { std::fill(std::begin(pages), std::end(pages), kGuard); }
  std::byte* data() { return pages + kMoveGranule; }
  bool guards_hold() const {
    const auto intact = [](std::byte b) { return b == kGuard; };
    return std::all_of(pages, pages + kMoveGranule, intact) &&
           std::all_of(pages + kMoveGranule + kBytes, std::end(pages), intact);
  }
};

TEST(CpuMethods, offer_every_kind_of_traffic_and_the_main_arithmetic) {
  const CpuMethods methods = cpu_methods();
  EXPECT_FALSE(methods.reads.empty());
  EXPECT_FALSE(methods.writes.empty());
  EXPECT_FALSE(methods.copies.empty());
  std::set<std::string> ceilings;
  for (const auto& method : methods.arithmetic) ceilings.insert(method.ceiling);
  EXPECT_TRUE(ceilings.contains("fma_f32"));
  EXPECT_TRUE(ceilings.contains("fma_f64"));
}

TEST(CpuMethods, write_every_byte_and_no_other) {
  for (const WriteMethod& method : cpu_methods().writes) {
    const auto block = std::make_unique<Guarded>();
    method.run(block->data(), kBytes);
    EXPECT_EQ(std::count(block->data(), block->data() + kBytes, kGuard), 0) << method.name;
    EXPECT_TRUE(block->guards_hold()) << method.name;
  }
}

TEST(CpuMethods, copy_every_byte_and_no_other) {
  for (const CopyMethod& method : cpu_methods().copies) {
    const auto from = std::make_unique<Guarded>();
    const auto to = std::make_unique<Guarded>();
    for (std::size_t i = 0; i < kBytes; ++i)
      from->data()[i] = static_cast<std::byte>(i * 7 + i / 256);
    method.run(to->data(), from->data(), kBytes);
    EXPECT_TRUE(std::equal(from->data(), from->data() + kBytes, to->data())) << method.name;
    EXPECT_TRUE(to->guards_hold()) << method.name;
  }
}

double best_seconds(const std::function<void()>& run) {
  double best = 1e9;
  for (int sample = 0; sample < 7; ++sample) {
    const auto start = std::chrono::steady_clock::now();
    run();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

TEST(CpuMethods, do_work_that_grows_with_what_is_asked) {
  // A loop that a compiler dropped would take no time; no core reads 1 TB/s or does 8 TOP/s.
  const auto block = std::make_unique<Guarded>();
  for (const ReadMethod& method : cpu_methods().reads) {
    constexpr int kPasses = 256;
    const double seconds = best_seconds([&] {
      for (int pass = 0; pass < kPasses; ++pass) method.run(block->data(), kBytes);
    });
    EXPECT_GT(seconds, 1.0 * kPasses * kBytes / 1e12) << method.name;
  }
  for (const ArithmeticMethod& method : cpu_methods().arithmetic) {
    constexpr int kIterations = 20'000;
    const double seconds = best_seconds([&] { method.run(kIterations); });
    EXPECT_GT(seconds, kIterations * method.operations / 8e12) << method.name;
  }
}

}  // namespace
}  // namespace gauntlet::lab::inline ceilings
