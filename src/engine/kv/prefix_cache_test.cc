// Does a sequence take up only what is its own beginning, and does every page come back?
#include "engine/kv/prefix_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/random.h"

namespace gauntlet::engine::inline kv {
namespace {

using Ids = std::vector<std::int32_t>;

Ids numbers(std::int32_t first, std::int64_t count) {
  Ids ids(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) ids[i] = first + static_cast<std::int32_t>(i);
  return ids;
}

struct PrefixCaches : testing::Test {
  KvPool pool{{.page_tokens = 4, .window = 10, .full_pages = 40, .sliding_pages = 40}};
  PrefixCache cache{pool, PrefixCaching::on};

  /// Computes what is missing of the tokens, in chunks.
  void compute(SequenceId sequence, const Ids& tokens, std::int64_t chunk = 1000) {
    while (pool.length(sequence) < std::ssize(tokens)) {
      const std::int64_t count = std::min(chunk, std::ssize(tokens) - pool.length(sequence));
      ASSERT_TRUE(pool.reserve(sequence, count));
      cache.before_step(sequence, count);
      pool.commit(sequence, count);
      cache.after_step(sequence, tokens);
      ASSERT_EQ(cache.check_integrity(), "");
    }
  }
  void compute_and_close(const Ids& tokens, std::int64_t chunk = 1000) {
    const SequenceId sequence = cache.open(tokens);
    compute(sequence, tokens, chunk);
    cache.close(sequence);
  }
  std::int64_t reused(const Ids& tokens) {
    const SequenceId sequence = cache.open(tokens);
    const std::int64_t length = pool.length(sequence);
    EXPECT_EQ(cache.check_integrity(), "");
    cache.close(sequence);
    EXPECT_EQ(cache.check_integrity(), "");
    return length;
  }
};

TEST_F(PrefixCaches, takes_up_whole_pages_and_never_the_last_token) {
  compute_and_close(numbers(0, 23));
  EXPECT_EQ(reused(numbers(0, 23)), 20);
  EXPECT_EQ(reused(numbers(0, 21)), 20);
  EXPECT_EQ(reused(numbers(0, 20)), 16);
  EXPECT_EQ(reused(numbers(0, 4)), 0);
  EXPECT_EQ(reused({}), 0);
}

TEST_F(PrefixCaches, tells_prefixes_apart_that_share_later_pages) {
  compute_and_close(numbers(0, 16));
  Ids other = numbers(0, 16);
  other[1] = 99;
  EXPECT_EQ(reused(other), 0);
  other = numbers(0, 17);
  other[9] = 99;
  EXPECT_EQ(reused(other), 8);
}

TEST_F(PrefixCaches, keeps_every_window_of_a_chunk_longer_than_it) {
  compute_and_close(numbers(0, 60));
  for (std::int64_t shared = 4; shared <= 56; shared += 4) {
    Ids other = numbers(0, 60);
    other[shared] = 999;
    EXPECT_EQ(reused(other), shared);
  }
}

TEST_F(PrefixCaches, takes_up_no_prefix_whose_window_is_gone) {
  compute_and_close(numbers(0, 41));
  // The window of 10 tokens at 40 sees pages 7, 8 and 9; those before slid out first.
  ASSERT_EQ(cache.evict(KvGroup::sliding, 7), 7);
  EXPECT_EQ(reused(numbers(0, 41)), 40);
  EXPECT_EQ(reused(numbers(0, 40)), 0) << "page 6 is gone";
  ASSERT_EQ(cache.evict(KvGroup::sliding, 1), 1);
  EXPECT_EQ(reused(numbers(0, 41)), 0);
  while (cache.evict(KvGroup::sliding, 1) == 1) {
  }
  EXPECT_EQ(reused(numbers(0, 41)), 0);
  EXPECT_EQ(cache.num_pages(), 10) << "full pages stay";

  compute_and_close(numbers(0, 41));
  EXPECT_EQ(reused(numbers(0, 41)), 40) << "the sliding pages were made anew";
}

TEST_F(PrefixCaches, two_sequences_that_compute_the_same_end_up_on_the_same_pages) {
  const SequenceId a = cache.open(numbers(0, 20));
  const SequenceId b = cache.open(numbers(0, 20));
  compute(a, numbers(0, 20));
  compute(b, numbers(0, 20), 3);
  EXPECT_TRUE(std::ranges::equal(pool.table(a, KvGroup::full), pool.table(b, KvGroup::full)));
  cache.close(a);
  EXPECT_EQ(cache.evictable(KvGroup::full), 0) << "the other one still uses them";
  cache.close(b);
  EXPECT_EQ(cache.evictable(KvGroup::full), 5);
  EXPECT_EQ(cache.check_integrity(), "");
}

TEST_F(PrefixCaches, evicts_the_least_recently_used_and_the_last_page_of_it_first) {
  compute_and_close(numbers(0, 12));
  compute_and_close(numbers(100, 12));
  EXPECT_EQ(reused(numbers(0, 13)), 12);  // used again, so that the other one is older
  EXPECT_EQ(cache.evict(KvGroup::full, 1), 1);
  EXPECT_EQ(reused(numbers(100, 13)), 8);
  EXPECT_EQ(reused(numbers(0, 13)), 12);
  EXPECT_EQ(cache.evict(KvGroup::full, 100), 5);
  EXPECT_EQ(pool.free_pages(KvGroup::full), 40);
  EXPECT_EQ(pool.free_pages(KvGroup::sliding), 40);
}

TEST_F(PrefixCaches, a_failed_step_leaves_nothing_held) {
  const SequenceId sequence = cache.open(numbers(0, 20));
  ASSERT_TRUE(pool.reserve(sequence, 20));
  cache.before_step(sequence, 20);
  cache.after_step(sequence, numbers(0, 20));
  EXPECT_EQ(cache.check_integrity(), "");
  cache.close(sequence);
  EXPECT_EQ(cache.num_pages(), 0);
  EXPECT_EQ(pool.free_pages(KvGroup::sliding), 40);
}

TEST_F(PrefixCaches, shares_nothing_when_switched_off) {
  PrefixCache off(pool, PrefixCaching::off);
  for (int time = 0; time < 2; ++time) {
    const SequenceId sequence = off.open(numbers(0, 20));
    EXPECT_EQ(pool.length(sequence), 0);
    ASSERT_TRUE(pool.reserve(sequence, 20));
    off.before_step(sequence, 20);
    pool.commit(sequence, 20);
    off.after_step(sequence, numbers(0, 20));
    off.close(sequence);
  }
  EXPECT_EQ(pool.free_pages(KvGroup::full), 40);
}

/// What each page holds, written as an executor would; a reader finds its own tokens or the test
/// fails.
class Contents {
 public:
  explicit Contents(KvPool& pool) : pool_(pool) {}

  void write(SequenceId sequence, const Ids& tokens, std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      for (const KvGroup group : {KvGroup::full, KvGroup::sliding}) {
        cells_[{group, pool_.table(sequence, group)[at / 4] * 4 + at % 4}] = tokens[at];
      }
    }
  }
  bool reads(SequenceId sequence, const Ids& tokens) const {
    const std::int64_t length = pool_.length(sequence);
    for (std::int64_t at = 0; at < length; ++at) {
      if (cells_.at({KvGroup::full, pool_.table(sequence, KvGroup::full)[at / 4] * 4 + at % 4}) !=
          tokens[at]) {
        return false;
      }
      if (at < length - pool_.config().window + 1) continue;
      const std::int32_t page = pool_.table(sequence, KvGroup::sliding)[at / 4];
      if (page == kNoPage || cells_.at({KvGroup::sliding, page * 4 + at % 4}) != tokens[at]) {
        return false;
      }
    }
    return true;
  }

 private:
  KvPool& pool_;
  std::map<std::pair<KvGroup, std::int64_t>, std::int32_t> cells_;
};

TEST_F(PrefixCaches, stay_whole_through_random_use_and_never_share_a_wrong_page) {
  Contents contents(pool);
  Random random(11);
  struct Live {
    SequenceId sequence;
    Ids tokens;
  };
  std::vector<Live> live;
  std::int64_t total_reused = 0;
  for (int operation = 0; operation < 6000; ++operation) {
    const std::uint64_t kind = random.next_below(10);
    if (live.empty() || (kind == 0 && live.size() < 6)) {
      // Few distinct tokens: prefixes often agree, and often part in the middle of a page.
      Ids tokens(5 + random.next_below(40));
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        tokens[i] = random.next_below(30) == 0 ? 1 : static_cast<std::int32_t>(i / 20);
      }
      const SequenceId sequence = cache.open(tokens);
      total_reused += pool.length(sequence);
      live.push_back({sequence, std::move(tokens)});
      ASSERT_TRUE(contents.reads(sequence, live.back().tokens)) << "operation " << operation;
    } else if (kind == 1) {
      const std::size_t pick = random.next_below(live.size());
      cache.close(live[pick].sequence);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(pick));
    } else if (kind == 2) {
      cache.evict(random.next_below(2) == 0 ? KvGroup::full : KvGroup::sliding,
                  static_cast<std::int64_t>(random.next_below(4)));
    } else {
      Live& one = live[random.next_below(live.size())];
      const std::int64_t begin = pool.length(one.sequence);
      const std::int64_t left = std::ssize(one.tokens) - begin;
      const std::int64_t count =
          std::min<std::int64_t>(left, static_cast<std::int64_t>(1 + random.next_below(25)));
      if (count > 0 && pool.reserve(one.sequence, count)) {
        cache.before_step(one.sequence, count);
        contents.write(one.sequence, one.tokens, begin, begin + count);
        if (random.next_below(10) != 0) pool.commit(one.sequence, count);
        cache.after_step(one.sequence, one.tokens);
      }
      ASSERT_TRUE(contents.reads(one.sequence, one.tokens)) << "operation " << operation;
    }
    ASSERT_EQ(cache.check_integrity(), "") << "operation " << operation;
  }
  EXPECT_GT(total_reused, 1000);
  for (const Live& one : live) cache.close(one.sequence);
  cache.evict(KvGroup::full, 1000);
  EXPECT_EQ(pool.free_pages(KvGroup::full), 40);
  EXPECT_EQ(pool.free_pages(KvGroup::sliding), 40);
}

}  // namespace
}  // namespace gauntlet::engine::inline kv
