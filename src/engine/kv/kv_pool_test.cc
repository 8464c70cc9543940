#include "engine/kv/kv_pool.h"

#include <gtest/gtest.h>

#include "core/check.h"
#include "core/random.h"

namespace gauntlet::engine::inline kv {
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

TEST(KvPool, a_page_that_was_reserved_for_a_refused_guess_is_not_written_by_two) {
  KvPool pool = small_pool();
  const SequenceId parent = pool.create();
  ASSERT_TRUE(pool.reserve(parent, 14));
  pool.commit(parent, 14);
  ASSERT_TRUE(pool.reserve(parent, 20));  // guesses, over two more pages
  pool.commit(parent, 1);
  const SequenceId child = pool.fork(parent);
  for (const SequenceId id : {parent, child}) {
    for (const KvGroup group : {KvGroup::full, KvGroup::sliding}) {
      // The parent copies the open page, and has two already; the child has the open one.
      EXPECT_EQ(pool.pages_needed(id, group, 20), id == parent ? 1 : 2);
    }
    ASSERT_TRUE(pool.reserve(id, 20));
  }
  EXPECT_EQ(pool.take_copies().size(), 2u) << "only the open page holds anything";
  for (const KvGroup group : {KvGroup::full, KvGroup::sliding}) {
    for (std::size_t page = 0; page < 3; ++page) {
      EXPECT_NE(pool.table(parent, group)[page], pool.table(child, group)[page]);
    }
  }
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

TEST(KvPool, a_held_page_outlives_its_sequence_and_can_be_adopted) {
  KvPool pool = small_pool();
  const SequenceId first = pool.create();
  ASSERT_TRUE(pool.reserve(first, 16));
  const std::int32_t full = pool.table(first, KvGroup::full)[0];
  const std::int32_t sliding = pool.table(first, KvGroup::sliding)[0];
  pool.hold(KvGroup::full, full);
  pool.hold(KvGroup::sliding, sliding);
  pool.commit(first, 16);
  pool.free(first);
  EXPECT_EQ(pool.check_integrity(), "");
  EXPECT_EQ(pool.free_pages(KvGroup::full), 39);

  const SequenceId second = pool.adopt({&full, 1}, {&sliding, 1});
  EXPECT_EQ(pool.length(second), 16);
  EXPECT_EQ(pool.references(KvGroup::full, full), 2);
  ASSERT_TRUE(pool.reserve(second, 1));
  EXPECT_TRUE(pool.take_copies().empty());
  pool.release(KvGroup::full, full);
  pool.release(KvGroup::sliding, sliding);
  pool.free(second);
  EXPECT_EQ(pool.free_pages(KvGroup::full), 40);
  EXPECT_EQ(pool.free_pages(KvGroup::sliding), 24);
  EXPECT_EQ(pool.check_integrity(), "");
  EXPECT_THROW(pool.release(KvGroup::full, full), Fault);
  EXPECT_THROW(pool.adopt({&full, 1}, {&sliding, 1}), Fault);
}

TEST(KvPool, a_replaced_page_goes_back) {
  KvPool pool = small_pool();
  const SequenceId ids[] = {pool.create(), pool.create()};
  for (const SequenceId id : ids) {
    ASSERT_TRUE(pool.reserve(id, 20));
    pool.commit(id, 20);
  }
  const std::int32_t shared = pool.table(ids[0], KvGroup::full)[0];
  pool.replace(ids[1], KvGroup::full, 0, shared);
  EXPECT_EQ(pool.table(ids[1], KvGroup::full)[0], shared);
  EXPECT_EQ(pool.free_pages(KvGroup::full), 40 - 3);
  EXPECT_EQ(pool.check_integrity(), "");
  EXPECT_THROW(pool.replace(ids[1], KvGroup::full, 1, shared), Fault) << "its end is not written";
}

KvPool contiguous_pool() {
  return KvPool(
      {.page_tokens = 16, .window = 32, .full_pages = 40, .sliding_pages = 40, .run_pages = 8});
}

std::vector<std::int32_t> pages_of(const KvPool& pool, SequenceId id, KvGroup group) {
  const auto table = pool.table(id, group);
  return {table.begin(), table.end()};
}

TEST(KvPool, a_contiguous_sequence_reserves_one_run_for_its_greatest_length) {
  KvPool pool = contiguous_pool();
  const SequenceId first = pool.create(), second = pool.create();
  ASSERT_TRUE(pool.reserve(first, 1));
  ASSERT_TRUE(pool.reserve(second, 1));
  for (const KvGroup group : {KvGroup::full, KvGroup::sliding}) {
    EXPECT_EQ(pages_of(pool, first, group), (std::vector{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(pages_of(pool, second, group), (std::vector{8, 9, 10, 11, 12, 13, 14, 15}));
    EXPECT_EQ(pool.free_pages(group), 24);
    EXPECT_EQ(pool.pages_needed(first, group, 127), 0);
  }
  pool.commit(first, 1);
  ASSERT_TRUE(pool.reserve(first, 127));
  pool.commit(first, 127);
  EXPECT_EQ(pages_of(pool, first, KvGroup::sliding)[0], 0) << "nothing slides out";
  EXPECT_FALSE(pool.reserve(first, 1)) << "a run does not grow";
  EXPECT_EQ(pool.check_integrity(), "");
}

TEST(KvPool, there_are_as_many_contiguous_sequences_as_runs) {
  KvPool pool = contiguous_pool();
  std::vector<SequenceId> ids;
  for (int i = 0; i < 6; ++i) ids.push_back(pool.create());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(pool.reserve(ids[i], 3));
  EXPECT_FALSE(pool.reserve(ids[5], 1));
  pool.free(ids[2]);
  ASSERT_TRUE(pool.reserve(ids[5], 1));
  EXPECT_EQ(pages_of(pool, ids[5], KvGroup::full)[0], 16);
  EXPECT_EQ(pool.check_integrity(), "");
}

TEST(KvPool, a_contiguous_fork_is_copied_whole_when_it_is_first_written) {
  KvPool pool = contiguous_pool();
  const SequenceId parent = pool.create();
  ASSERT_TRUE(pool.reserve(parent, 20));
  pool.commit(parent, 20);
  const SequenceId child = pool.fork(parent);
  EXPECT_EQ(pages_of(pool, child, KvGroup::full), (std::vector{0, 1}));
  pool.free(parent);
  EXPECT_EQ(pool.free_pages(KvGroup::full), 32) << "the run is kept for what the fork has of it";
  ASSERT_TRUE(pool.reserve(child, 1));
  const auto copies = pool.take_copies();
  ASSERT_EQ(copies.size(), 4u);
  for (std::int32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(copies[i].from, i % 2);
    EXPECT_EQ(copies[i].to, 8 + i % 2);
  }
  EXPECT_EQ(pool.free_pages(KvGroup::full), 32) << "the parent's run went back";
  EXPECT_EQ(pool.check_integrity(), "");
}

void try_random_operations(KvPool pool) {
  Random random(7);
  std::vector<SequenceId> live;
  std::vector<std::pair<KvGroup, std::int32_t>> held;
  for (int operation = 0; operation < 10000; ++operation) {
    const std::uint64_t kind = random.next_below(12);
    if (live.empty() || kind == 0) {
      live.push_back(pool.create());
    } else {
      const std::size_t pick = random.next_below(live.size());
      if (kind == 1) {
        pool.free(live[pick]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(pick));
      } else if (kind == 2) {
        live.push_back(pool.fork(live[pick]));
      } else if (kind == 10) {
        const KvGroup group = random.next_below(2) == 0 ? KvGroup::full : KvGroup::sliding;
        const auto table = pool.table(live[pick], group);
        if (!table.empty() && table.back() != kNoPage && held.size() < 8) {
          held.emplace_back(group, table.back());
          pool.hold(group, table.back());
        }
      } else if (kind == 11) {
        if (!held.empty()) pool.release(held.back().first, held.back().second);
        if (!held.empty()) held.pop_back();
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

TEST(KvPool, stays_whole_through_ten_thousand_random_operations) {
  try_random_operations(small_pool());
}

TEST(KvPool, stays_whole_through_ten_thousand_random_operations_when_contiguous) {
  try_random_operations(contiguous_pool());
}

}  // namespace
}  // namespace gauntlet::engine::inline kv
