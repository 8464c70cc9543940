#include "lab/author/counts/shared_counters.h"

#include <gtest/gtest.h>

#include "core/os/threads.h"

namespace gauntlet::lab::inline author::inline counts {
namespace {

TEST(SharedCounters, count_additions_of_all_threads_whatever_is_added) {
  std::uint32_t words[3] = {};
  const auto counters = std::make_shared<SharedCounters>(words);
  ThreadPool pool({allowed_cpus().front(), allowed_cpus().back()});
  const Side side = counted(atomic_additions(counters), [&] {
    pool.run([&](int) {
      SharedCounters::Adder adder(*counters);
      for (int i = 0; i < 1000; ++i) adder.add(2, 5);
    });
  });
  side.run();
  side.run();
  EXPECT_EQ(words[0], 0u);
  EXPECT_EQ(words[2], 20'000u);
  EXPECT_EQ(side.take_outcomes().values.at("atomic_additions"), 2000);
}

}  // namespace
}  // namespace gauntlet::lab::inline author::inline counts
