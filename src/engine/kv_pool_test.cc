#include "engine/kv_pool.h"

#include <gtest/gtest.h>

#include "core/random.h"

namespace gauntlet::engine {
namespace {

KvPool small_pool() {
  return KvPool({.page_tokens = 16, .window = 128, .full_pages = 40, .sliding_pages = 24});
}

TEST(KvPool, a_sliding_table_keeps_only_its_window) {
  KvPool pool = small_pool();
  const SequenceId id = pool.create();
  for (int i = 0; i < 400; ++i) {
    ASSERT_TRUE(pool.reserve(id, 1));
    pool.commit(id, 1);
    ASSERT_EQ(pool.check_integrity(), "");
  }
  EXPECT_EQ(pool.free_pages(KvGroup::full), 40 - 25);
  // The window of 128 ending at position 400 touches positions 273..400.
  EXPECT_EQ(pool.free_pages(KvGroup::sliding), 24 - 8);
  EXPECT_EQ(pool.table(id, KvGroup::sliding)[16], kNoPage);
  EXPECT_NE(pool.table(id, KvGroup::sliding)[17], kNoPage);
}

TEST(KvPool, reserve_changes_nothing_when_pages_are_short) {
  KvPool pool = small_pool();
  const SequenceId id = pool.create();
  EXPECT_FALSE(pool.reserve(id, 41 * 16));
  EXPECT_EQ(pool.free_pages(KvGroup::full), 40);
  EXPECT_EQ(pool.free_pages(KvGroup::sliding), 24);
  EXPECT_EQ(pool.check_integrity(), "");
}

TEST(KvPool, a_shared_page_is_copied_before_it_is_written) {
  KvPool pool = small_pool();
  const SequenceId parent = pool.create();
  ASSERT_TRUE(pool.reserve(parent, 20));
  pool.commit(parent, 20);
  const SequenceId child = pool.fork(parent);
  ASSERT_TRUE(pool.reserve(child, 1));
  const auto copies = pool.take_copies();
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0].from, pool.table(parent, KvGroup::full)[1]);
  EXPECT_EQ(copies[0].to, pool.table(child, KvGroup::full)[1]);
  EXPECT_EQ(pool.table(parent, KvGroup::full)[0], pool.table(child, KvGroup::full)[0]);
  EXPECT_EQ(pool.check_integrity(), "");
}

TEST(KvPool, a_whole_shared_page_is_never_copied) {
  KvPool pool = small_pool();
  const SequenceId parent = pool.create();
  ASSERT_TRUE(pool.reserve(parent, 32));
  pool.commit(parent, 32);
  const SequenceId child = pool.fork(parent);
  ASSERT_TRUE(pool.reserve(child, 1));
  EXPECT_TRUE(pool.take_copies().empty());
}

TEST(KvPool, stays_whole_through_ten_thousand_random_operations) {
  KvPool pool = small_pool();
  Random random(7);
  std::vector<SequenceId> live;
  for (int operation = 0; operation < 10000; ++operation) {
    const std::uint64_t kind = random.next_below(10);
    if (live.empty() || kind == 0) {
      live.push_back(pool.create());
    } else {
      const std::size_t pick = random.next_below(live.size());
      if (kind == 1) {
        pool.free(live[pick]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(pick));
      } else if (kind == 2) {
        live.push_back(pool.fork(live[pick]));
      } else {
        const auto count = static_cast<std::int64_t>(random.next_below(kind == 3 ? 100 : 6));
        const std::int64_t before = pool.length(live[pick]);
        if (pool.reserve(live[pick], count)) {
          // A step may fail after its pages were reserved: then nothing is committed.
          if (random.next_below(8) != 0) pool.commit(live[pick], count);
        } else {
          EXPECT_EQ(pool.length(live[pick]), before);
        }
      }
    }
    ASSERT_EQ(pool.check_integrity(), "") << "after operation " << operation;
  }
}

}  // namespace
}  // namespace gauntlet::engine
