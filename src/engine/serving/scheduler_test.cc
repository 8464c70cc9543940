// Is every request served in the end, in its own order, within the budget, with no page lost?
#include "engine/serving/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/check.h"
#include "core/random.h"

namespace gauntlet::engine::inline serving {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr KvPoolConfig kPool{.page_tokens = 4, .window = 10, .full_pages = 60, .sliding_pages = 60};

Ids prompt_of(std::int64_t count, std::int32_t first = 0) {
  Ids ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

/// Runs plans as an executor would; the token after n others is n.
class Machine {
 public:
  explicit Machine(const SchedulerConfig& config, const KvPoolConfig& pool_config = kPool)
      : pool(pool_config), scheduler(pool, config), config_(config) {}

  bool add(RequestId id, Ids prompt, std::int64_t output, int priority = 0, RequestId leader = 0,
           Caller caller = {}) {
    const auto length = std::ssize(prompt);
    if (!scheduler.add({.id = id,
                        .prompt = std::move(prompt),
                        .priority = priority,
                        .leader = leader,
                        .caller = caller,
                        .prefix = is_scored(id) ? Prefix::computed : Prefix::shared,
                        .max_chunk = is_cut(id) ? 1 : kNoChunkLimit},
                       now_s)) {
      return false;
    }
    outputs_[id] = {length, length + output};
    return true;
  }
  bool add_for(Caller caller, RequestId id, std::int64_t prompt, std::int64_t output) {
    return add(id, prompt_of(prompt), output, 0, 0, caller);
  }
  void cancel(RequestId id) {
    scheduler.remove(id);
    outputs_.erase(id);
  }
  void finish(RequestId id) {
    scheduler.finish(id);
    outputs_.erase(id);
    finished.push_back(id);
  }
  bool is_live(RequestId id) const { return outputs_.contains(id); }
  bool is_idle() const { return outputs_.empty(); }

  StepPlan step(bool fails = false) {
    now_s += 1;
    StepPlan plan = scheduler.plan(now_s);
    for (const RequestId id : plan.expired) outputs_.erase(id);
    std::int64_t tokens = 0;
    for (const Work& work : plan.work) {
      tokens += work.count;
      EXPECT_EQ(work.begin, pool.length(work.sequence));
      if (is_scored(work.id)) {
        EXPECT_TRUE(work.begin == 0 || work.begin == ends_[work.id]) << "a token was not seen";
        ends_[work.id] = work.begin + (fails ? 0 : work.count);
      }
      if (is_cut(work.id)) {
        EXPECT_EQ(work.count, 1);
      }
      EXPECT_EQ(work.is_last, work.begin + work.count == std::ssize(scheduler.tokens(work.id)));
      if (!fails) pool.commit(work.sequence, work.count);
    }
    EXPECT_LE(tokens, config_.max_step_tokens);
    EXPECT_LE(scheduler.num_running(), config_.max_running);
    scheduler.complete(plan);
    for (const Work& work : plan.work) {
      EXPECT_EQ(work.is_kept_slot, !is_live(work.id));
      if (!work.is_last || work.is_kept_slot || fails) continue;
      const auto known = scheduler.tokens(work.id);
      auto& [next, end] = outputs_.at(work.id);
      EXPECT_EQ(std::ssize(known), next) << "a token was skipped or made twice";
      ++next;
      if (next == end) {
        finish(work.id);
      } else {
        scheduler.append(work.id, static_cast<std::int32_t>(known.size()));
      }
    }
    EXPECT_EQ(scheduler.check_integrity(), "");
    return plan;
  }
  int drain(int limit = 10000) {
    int steps = 0;
    for (; !is_idle() && steps < limit; ++steps) step();
    EXPECT_TRUE(is_idle()) << "a request starves";
    return steps;
  }

  KvPool pool;
  Scheduler scheduler;
  double now_s = 0;
  std::vector<RequestId> finished;
  bool scores_some = false;  // of its requests: their whole prompts are computed, some one by one

 private:
  bool is_scored(RequestId id) const { return scores_some && id % 7 == 3; }
  bool is_cut(RequestId id) const { return scores_some && id % 14 == 3; }

  SchedulerConfig config_;
  std::map<RequestId, std::int64_t> ends_;  // of what was computed, of those that are scored
  std::map<RequestId, std::pair<std::int64_t, std::int64_t>> outputs_;  // next position, end
};

std::map<RequestId, std::int64_t> counts(const StepPlan& plan) {
  std::map<RequestId, std::int64_t> all;
  for (const Work& work : plan.work) all[work.id] = work.count;
  return all;
}

using Counts = std::map<RequestId, std::int64_t>;

TEST(Scheduler, prompts_take_what_decoding_leaves) {
  Machine machine({.prefix_caching = PrefixCaching::off, .max_step_tokens = 8});
  ASSERT_TRUE(machine.add(1, prompt_of(3), 20));
  EXPECT_EQ(counts(machine.step()), (Counts{{1, 3}}));
  ASSERT_TRUE(machine.add(2, prompt_of(10), 20));
  ASSERT_TRUE(machine.add(3, prompt_of(4), 20));
  EXPECT_EQ(counts(machine.step()), (Counts{{1, 1}, {2, 7}}));
  EXPECT_EQ(counts(machine.step()), (Counts{{1, 1}, {2, 3}, {3, 4}}));
  EXPECT_EQ(counts(machine.step()), (Counts{{1, 1}, {2, 1}, {3, 1}}));
}

TEST(Scheduler, whole_prompts_go_first_when_chunking_is_off) {
  Machine machine(
      {.chunking = Chunking::off, .prefix_caching = PrefixCaching::off, .max_step_tokens = 8});
  ASSERT_TRUE(machine.add(1, prompt_of(3), 20));
  machine.step();
  ASSERT_TRUE(machine.add(2, prompt_of(18), 20));
  ASSERT_TRUE(machine.add(3, prompt_of(7), 20));
  EXPECT_EQ(counts(machine.step()), (Counts{{2, 8}})) << "longer than a step: decoding waits";
  EXPECT_EQ(counts(machine.step()), (Counts{{2, 8}}));
  EXPECT_EQ(counts(machine.step()), (Counts{{1, 1}, {2, 2}})) << "the third is not cut";
  EXPECT_EQ(counts(machine.step()), (Counts{{1, 1}, {3, 7}}));
}

TEST(Scheduler, a_fixed_batch_lets_nobody_join) {
  Machine machine({.batching = Batching::fixed, .max_step_tokens = 64, .fixed_batch = 2});
  for (RequestId id = 1; id <= 3; ++id) {
    ASSERT_TRUE(machine.add(id, prompt_of(4), id == 1 ? 2 : 6));
  }
  for (int i = 0; i < 6; ++i) {
    EXPECT_FALSE(counts(machine.step()).contains(3)) << "step " << i;
  }
  EXPECT_EQ(machine.finished, (std::vector<RequestId>{1, 2}));
  EXPECT_TRUE(counts(machine.step()).contains(3));
}

SchedulerConfig kept_slots(std::int64_t batch) {
  return {.batching = Batching::fixed,
          .prefix_caching = PrefixCaching::off,
          .max_step_tokens = 64,
          .fixed_batch = batch,
          .fixed_slots = FixedSlots::kept};
}

TEST(Scheduler, a_kept_slot_is_computed_until_its_batch_is_done) {
  Machine machine(kept_slots(2));
  for (RequestId id = 1; id <= 3; ++id) {
    ASSERT_TRUE(machine.add(id, prompt_of(4), id == 1 ? 2 : 6));
  }
  machine.step();
  for (int i = 1; i < 6; ++i) {
    EXPECT_EQ(counts(machine.step()), (Counts{{1, 1}, {2, 1}})) << "step " << i;
  }
  EXPECT_EQ(machine.finished, (std::vector<RequestId>{1, 2}));
  EXPECT_EQ(machine.pool.num_sequences(), 0) << "the batch is done";
  EXPECT_EQ(counts(machine.step()), (Counts{{3, 4}}));
}

TEST(Scheduler, a_kept_slot_goes_with_a_cancelled_batch_and_where_it_cannot_grow) {
  SchedulerConfig config = kept_slots(2);
  config.max_positions = 8;
  Machine machine(config);
  ASSERT_TRUE(machine.add(1, prompt_of(4), 1));
  ASSERT_TRUE(machine.add(2, prompt_of(4), 50));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(counts(machine.step()).contains(1)) << "step " << i;
  EXPECT_EQ(counts(machine.step()), (Counts{{2, 1}})) << "eight positions are all there are";
  ASSERT_TRUE(machine.add(3, prompt_of(4), 1));
  machine.cancel(2);
  EXPECT_EQ(machine.pool.num_sequences(), 0);
  EXPECT_EQ(counts(machine.step()), (Counts{{3, 4}}));
}

TEST(Scheduler, a_higher_priority_goes_first_but_waiting_outweighs_it) {
  Machine machine({.max_running = 1, .priority_s = 10});
  ASSERT_TRUE(machine.add(1, prompt_of(2), 3));
  ASSERT_TRUE(machine.add(2, prompt_of(2), 3, 1));
  machine.drain();
  EXPECT_EQ(machine.finished, (std::vector<RequestId>{2, 1}));

  machine.finished.clear();
  ASSERT_TRUE(machine.add(3, prompt_of(2), 3));
  machine.now_s += 20;
  ASSERT_TRUE(machine.add(4, prompt_of(2), 3, 1));
  machine.drain();
  EXPECT_EQ(machine.finished, (std::vector<RequestId>{3, 4}));
}

TEST(Scheduler, a_low_priority_gets_its_turn_under_a_stream_of_high_ones) {
  Machine machine({.max_running = 1, .priority_s = 10});
  ASSERT_TRUE(machine.add(1, prompt_of(2), 2));
  for (RequestId id = 2; id < 100 && machine.is_live(1); ++id) {
    ASSERT_TRUE(machine.add(id, prompt_of(2), 2, 3));
    machine.step();
  }
  EXPECT_FALSE(machine.is_live(1));
}

TEST(Scheduler, takes_turns_when_more_decode_than_a_step_holds) {
  Machine machine({.max_step_tokens = 4, .max_running = 12});
  for (RequestId id = 1; id <= 12; ++id) ASSERT_TRUE(machine.add(id, prompt_of(3, 100), 60));
  for (int i = 0; i < 40; ++i) machine.step();
  ASSERT_EQ(machine.scheduler.num_running(), 12);
  Counts served;
  for (int i = 0; i < 9; ++i) {
    for (const auto& [id, count] : counts(machine.step())) served[id] += count;
  }
  for (RequestId id = 1; id <= 12; ++id) EXPECT_EQ(served[id], 3) << "request " << id;
}

TEST(Scheduler, preempts_the_last_in_rank_and_serves_it_later) {
  // 60 pages of 4: three requests of 100 positions do not fit together.
  Machine machine({.prefix_caching = PrefixCaching::off, .max_running = 4});
  ASSERT_TRUE(machine.add(1, prompt_of(20), 80, -1));
  ASSERT_TRUE(machine.add(2, prompt_of(20), 80));
  ASSERT_TRUE(machine.add(3, prompt_of(20), 80));
  machine.drain();
  EXPECT_EQ(machine.finished, (std::vector<RequestId>{2, 3, 1}));
  EXPECT_GE(machine.scheduler.stats().preemptions, 1);
  EXPECT_LE(machine.scheduler.stats().preemptions, 4) << "it was put back again and again";
  EXPECT_EQ(machine.pool.free_pages(KvGroup::full), 60);
}

TEST(Scheduler, a_request_as_long_as_the_pool_runs_alone) {
  Machine machine({.max_step_tokens = 64});
  ASSERT_TRUE(machine.add(1, prompt_of(machine.scheduler.capacity()), 1));
  ASSERT_TRUE(machine.add(2, prompt_of(1), machine.scheduler.capacity()));
  machine.drain();
  EXPECT_THROW((void)machine.add(3, prompt_of(machine.scheduler.capacity() + 1), 1), Fault);
}

TEST(Scheduler, refuses_when_the_queue_is_full_and_drops_who_waited_too_long) {
  Machine machine({.max_running = 1, .max_queue = 2, .max_wait_s = 5});
  ASSERT_TRUE(machine.add(1, prompt_of(2), 50));
  machine.step();
  ASSERT_TRUE(machine.add(2, prompt_of(2), 5));
  ASSERT_TRUE(machine.add(3, prompt_of(2), 5));
  EXPECT_FALSE(machine.add(4, prompt_of(2), 5));
  std::vector<RequestId> expired;
  for (int i = 0; i < 7; ++i) {
    const auto plan = machine.step();
    expired.insert(expired.end(), plan.expired.begin(), plan.expired.end());
  }
  EXPECT_EQ(expired, (std::vector<RequestId>{2, 3}));
  EXPECT_TRUE(machine.is_live(1)) << "it runs: its time does not count";
  EXPECT_TRUE(machine.add(4, prompt_of(2), 5));
}

TEST(Scheduler, followers_wait_for_their_leader_and_share_its_prompt) {
  Machine machine({.max_step_tokens = 64});
  ASSERT_TRUE(machine.add(1, prompt_of(30), 5));
  ASSERT_TRUE(machine.add(2, prompt_of(30), 5, 0, 1));
  EXPECT_EQ(counts(machine.step()), (Counts{{1, 30}}));
  EXPECT_EQ(counts(machine.step()), (Counts{{1, 1}, {2, 2}}));
  EXPECT_EQ(machine.scheduler.reused(2), 28);
  EXPECT_EQ(machine.scheduler.stats().prefix_queries, 60);
  EXPECT_EQ(machine.scheduler.stats().prefix_hits, 28);
  ASSERT_TRUE(machine.add(3, prompt_of(50, 300), 5));
  ASSERT_TRUE(machine.add(4, prompt_of(50, 300), 5, 0, 3));
  machine.cancel(3);
  machine.drain();
}

/// Places of each account, by how ids were given: account * 1000 and up.
std::map<RequestId, std::int64_t> places(const StepPlan& plan) {
  std::map<RequestId, std::int64_t> held;
  for (const Work& work : plan.work) ++held[work.id / 1000];
  return held;
}

constexpr KvPoolConfig kWide{
    .page_tokens = 4, .window = 10, .full_pages = 4000, .sliding_pages = 4000};

TEST(Scheduler, a_call_of_many_choices_makes_room_for_another) {
  Machine machine({.prefix_caching = PrefixCaching::off, .max_step_tokens = 64, .max_running = 8},
                  kWide);
  for (RequestId id = 1000; id < 1032; ++id) {
    ASSERT_TRUE(machine.add_for({.call = 1}, id, 2, 200));
  }
  for (int i = 0; i < 5; ++i) machine.step();
  EXPECT_EQ(machine.scheduler.num_running(), 8);
  ASSERT_TRUE(machine.add_for({}, 2000, 3, 5));
  EXPECT_EQ(counts(machine.step())[2000], 3) << "it waits for the other's choices";
  for (int i = 0; i < 4; ++i) EXPECT_EQ(counts(machine.step())[2000], 1) << "it was put back";
  EXPECT_EQ(machine.finished, std::vector<RequestId>{2000});
  EXPECT_EQ(machine.scheduler.stats().preemptions, 1);
  machine.drain(20000);
}

TEST(Scheduler, a_call_of_many_choices_goes_on_under_a_stream_of_others) {
  Machine machine({.prefix_caching = PrefixCaching::off, .max_step_tokens = 64, .max_running = 4},
                  kWide);
  for (RequestId id = 1000; id < 1016; ++id) {
    ASSERT_TRUE(machine.add_for({.call = 1}, id, 2, 10));
  }
  RequestId next = 2000;
  for (int i = 0; i < 400; ++i) {
    ASSERT_TRUE(machine.add_for({}, next++, 2, 6));
    const bool goes_on = machine.is_live(1015);
    EXPECT_TRUE(places(machine.step()).contains(1) || !goes_on) << "it holds no place";
  }
  EXPECT_FALSE(machine.is_live(1015)) << "the call starves";
}

TEST(Scheduler, accounts_run_by_their_shares) {
  Machine machine({.prefix_caching = PrefixCaching::off, .max_step_tokens = 64, .max_running = 16},
                  kWide);
  for (RequestId id = 1000; id < 1040; ++id)
    ASSERT_TRUE(machine.add_for({.account = 1}, id, 2, 60));
  for (int i = 0; i < 3; ++i) machine.step();
  for (RequestId id = 3000; id < 3040; ++id) {
    ASSERT_TRUE(machine.add_for({.account = 3, .share = 3}, id, 2, 60));
  }
  machine.step();
  const auto held = places(machine.step());
  EXPECT_EQ(held.at(1), 4);
  EXPECT_EQ(held.at(3), 12);
  machine.drain();
}

TEST(Scheduler, pages_are_shared_as_places_are) {
  // Room for about four of these, all of it taken by one call.
  Machine machine({.prefix_caching = PrefixCaching::off, .max_step_tokens = 64, .max_running = 16});
  for (RequestId id = 1000; id < 1008; ++id) ASSERT_TRUE(machine.add_for({.call = 1}, id, 20, 40));
  for (int i = 0; i < 20; ++i) machine.step();
  ASSERT_TRUE(machine.add_for({}, 2000, 20, 40));
  int waited = 0;
  while (!counts(machine.step()).contains(2000)) ASSERT_LT(++waited, 3) << "it waits for pages";
  int steps = 0;
  while (machine.is_live(2000)) {
    machine.step();
    ASSERT_LT(++steps, 60) << "it was put back again and again";
  }
  machine.drain();
}

TEST(Scheduler, counts_the_queue_of_each_account) {
  Machine machine({.max_running = 1});
  ASSERT_TRUE(machine.add_for({.account = 1}, 1000, 2, 5));
  machine.step();
  ASSERT_TRUE(machine.add_for({.account = 1}, 1001, 2, 5));
  ASSERT_TRUE(machine.add_for({.account = 2}, 2000, 2, 5));
  ASSERT_TRUE(machine.add_for({.account = 2}, 2001, 2, 5));
  EXPECT_EQ(machine.scheduler.queued_by_account(),
            (std::map<std::int32_t, std::int64_t>{{1, 1}, {2, 2}}));
  machine.drain();
  EXPECT_TRUE(machine.scheduler.queued_by_account().empty());
}

TEST(Scheduler, cancelling_gives_the_pages_back_at_once) {
  Machine machine({.prefix_caching = PrefixCaching::off});
  ASSERT_TRUE(machine.add(1, prompt_of(100), 50));
  machine.step();
  EXPECT_LT(machine.pool.free_pages(KvGroup::full), 60);
  EXPECT_GT(machine.scheduler.kv_usage(), 0.4);
  machine.cancel(1);
  EXPECT_EQ(machine.pool.free_pages(KvGroup::full), 60);
  EXPECT_EQ(machine.scheduler.kv_usage(), 0);
}

struct Mix {
  std::string name;
  SchedulerConfig config;
  KvPoolConfig pool = kPool;
};

class RandomArrivals : public testing::TestWithParam<Mix> {};

TEST_P(RandomArrivals, are_all_served_in_order_and_leave_no_page) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Machine machine(GetParam().config, GetParam().pool);
    machine.scores_some = seed % 2 == 1;
    Random random(seed);
    std::vector<RequestId> live;
    const std::int64_t capacity = machine.scheduler.capacity();
    RequestId next = 1;
    for (int i = 0; i < 600; ++i) {
      if (random.next_below(4) == 0) {
        const auto length = static_cast<std::int64_t>(
            1 + random.next_below(random.next_below(8) == 0 ? static_cast<std::uint64_t>(capacity)
                                                            : 30));
        const std::int64_t output =
            std::min(capacity - length + 1, 1 + static_cast<std::int64_t>(random.next_below(60)));
        const RequestId leader = random.next_below(5) == 0 && next > 1 ? next - 1 : 0;
        const auto first = static_cast<std::int32_t>(random.next_below(3) * 1000);
        const auto account = static_cast<std::int32_t>(random.next_below(3));
        const Caller caller{.account = account,
                            .share = 1.0 + account,
                            .call = next - static_cast<RequestId>(random.next_below(3)) / 2};
        if (machine.add(next, prompt_of(length, first), output,
                        static_cast<int>(random.next_below(4)), leader, caller)) {
          live.push_back(next);
        }
        ++next;
      }
      if (!live.empty() && random.next_below(20) == 0) {
        const std::size_t pick = random.next_below(live.size());
        if (machine.is_live(live[pick])) machine.cancel(live[pick]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(pick));
      }
      machine.step(/*fails=*/random.next_below(15) == 0);
      if (HasFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
    machine.drain();
    EXPECT_EQ(machine.pool.num_sequences(), 0);
    EXPECT_EQ(machine.scheduler.kv_usage(), 0) << "a page is neither free nor idle";
    EXPECT_GT(machine.finished.size(), 30u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, RandomArrivals,
    testing::Values(
        Mix{"continuous", {.max_step_tokens = 32, .max_running = 8}},
        Mix{"uncached",
            {.prefix_caching = PrefixCaching::off, .max_step_tokens = 32, .max_running = 8}},
        Mix{"unchunked", {.chunking = Chunking::off, .max_step_tokens = 32, .max_running = 8}},
        Mix{"fixed", {.batching = Batching::fixed, .max_step_tokens = 32, .fixed_batch = 4}},
        Mix{"fixed_with_kept_slots",
            {.batching = Batching::fixed,
             .max_step_tokens = 32,
             .fixed_batch = 4,
             .fixed_slots = FixedSlots::kept}},
        Mix{"kept_slots_and_few_pages",
            {.batching = Batching::fixed,
             .max_step_tokens = 32,
             .fixed_batch = 8,
             .fixed_slots = FixedSlots::kept},
            {.page_tokens = 4, .window = 10, .full_pages = 20, .sliding_pages = 9}},
        Mix{"crowded", {.max_step_tokens = 5, .max_running = 12}},
        Mix{"impatient",
            {.max_step_tokens = 16, .max_running = 3, .max_queue = 5, .max_wait_s = 9}},
        Mix{"few_pages",
            {.max_step_tokens = 32, .max_running = 16},
            {.page_tokens = 4, .window = 10, .full_pages = 20, .sliding_pages = 9}},
        Mix{"one_window",
            {.max_step_tokens = 32, .max_running = 16},
            {.page_tokens = 4, .window = 10, .full_pages = 30, .sliding_pages = 4}},
        Mix{"contiguous",
            {.max_step_tokens = 32, .max_running = 16},
            {.page_tokens = 4,
             .window = 10,
             .full_pages = 80,
             .sliding_pages = 80,
             .run_pages = 20}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace gauntlet::engine::inline serving
