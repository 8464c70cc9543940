#include "lab/author/counts/buffer_store.h"

#include <gtest/gtest.h>

namespace gauntlet::lab::inline author::inline counts {
namespace {

TEST(BufferStore, counts_what_a_run_has_in_use_at_most) {
  const auto store = std::make_shared<BufferStore>(256);  // a KiB each
  int at_a_time = 1;
  const Side side = counted(most_held_kib(store), [&] {
    for (int round = 0; round < 4; ++round) {
      std::vector<BufferStore::Buffer> held;
      for (int i = 0; i < at_a_time; ++i) held.push_back(store->take());
    }
  });
  side.run();
  EXPECT_EQ(side.take_outcomes().values.at("most_held_kib"), 1);
  at_a_time = 3;
  side.run();
  EXPECT_EQ(side.take_outcomes().values.at("most_held_kib"), 3);
  at_a_time = 2;  // what an earlier run held is not this one's
  side.run();
  side.run();
  EXPECT_EQ(side.take_outcomes().values.at("most_held_kib"), 2);
}

TEST(BufferStore, counts_what_is_kept_between_runs_in_each_of_them) {
  const auto store = std::make_shared<BufferStore>(256);
  std::vector<BufferStore::Buffer> kept;
  const Side side = counted(most_held_kib(store), [&] {
    if (kept.empty()) kept.push_back(store->take());
  });
  side.run();
  side.run();
  EXPECT_EQ(side.take_outcomes().values.at("most_held_kib"), 1);
}

TEST(BufferStore, gives_out_again_what_came_back) {
  BufferStore store(8);
  const float* first = nullptr;
  {
    const auto buffer = store.take();
    EXPECT_EQ(buffer->size(), 8u);
    first = buffer->data();
  }
  const auto again = store.take(), other = store.take();
  EXPECT_EQ(again->data(), first);
  EXPECT_NE(other->data(), first);
}

}  // namespace
}  // namespace gauntlet::lab::inline author::inline counts
