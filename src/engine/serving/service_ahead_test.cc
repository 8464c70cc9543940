// Does a request get the same tokens when the next step is planned before its token is known?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "core/random.h"
#include "engine/serving/recorded_events.h"
#include "engine/serving/service.h"
#include "engine/steps/fake_runner.h"
#include "engine/steps/pooled_executor.h"

namespace gauntlet::engine::inline serving {
namespace {

constexpr std::int32_t kEos = 7;

model::ModelConfig ahead_config() {
  model::ModelConfig config;
  config.name = "fake";
  config.vocab = 64;
  config.max_positions = 120;
  config.sliding_window = 8;
  config.eos_ids = {kEos};
  return config;
}

/// Tokens that depend on all before them, with an end now and then.
std::int32_t token_after(const FakeRunner::History& history) {
  std::uint64_t hash = 17;
  for (const std::int32_t token : history) hash = mix64(hash ^ static_cast<std::uint64_t>(token));
  return static_cast<std::int32_t>(hash % 64);
}

struct Bench {
  Bench(int in_flight, std::int64_t pages, SchedulerConfig scheduler = {}) {
    auto made = std::make_unique<FakeRunner>(
        ahead_config(), StepLimits{.tokens = 24, .items = 24, .page_tokens = 4}, in_flight);
    made->next = token_after;
    runner = made.get();
    executor = std::make_unique<PooledExecutor>(
        KvPoolConfig{.page_tokens = 4, .window = 8, .full_pages = pages, .sliding_pages = pages},
        std::move(made));
    scheduler.max_step_tokens = 24;
    service = std::make_unique<Service>(*executor, ServiceConfig{.scheduler = scheduler});
  }
  FakeRunner* runner = nullptr;
  std::unique_ptr<PooledExecutor> executor;
  std::unique_ptr<Service> service;
};

struct Script {
  std::vector<ServiceRequest> requests;
  std::vector<int> steps;              // after which each is submitted
  std::map<std::size_t, int> cancels;  // request, step
};

Script script_of(std::uint64_t seed) {
  Random random(seed);
  Script script;
  const auto count = 6 + random.next_below(10);
  for (std::uint64_t i = 0; i < count; ++i) {
    ServiceRequest request{.max_tokens = static_cast<std::int64_t>(1 + random.next_below(40)),
                           .num_choices = static_cast<int>(1 + random.next_below(3))};
    const auto shared = random.next_below(3);
    for (std::uint64_t t = 0; t < 1 + random.next_below(30); ++t) {
      request.prompt.push_back(static_cast<std::int32_t>((shared * 13 + t * 5) % 64));
    }
    if (random.next_below(6) == 0) request.end_of_sequence = EndOfSequence::ignored;
    if (random.next_below(8) == 0) {
      request.allowed = [](std::span<const std::int32_t> output) {
        return std::vector<std::uint32_t>{0xF0F0F0F0u >> (output.size() % 2), 0xFFFFu};
      };
    }
    if (random.next_below(10) == 0) script.cancels[i] = static_cast<int>(random.next_below(60));
    script.requests.push_back(std::move(request));
    script.steps.push_back(static_cast<int>(random.next_below(40)));
  }
  return script;
}

std::vector<RecordedEvents> run(const Script& script, Bench& bench, std::uint64_t failing_step) {
  std::vector<RecordedEvents> events(script.requests.size());
  std::map<std::size_t, RequestId> ids;
  std::uint64_t finished = 0;
  bench.runner->before_finish = [&](const StepData&) {
    if (++finished == failing_step) throw std::runtime_error("a step broke once");
  };
  for (int step = 0; step < 4000; ++step) {
    for (std::size_t i = 0; i < script.requests.size(); ++i) {
      if (script.steps[i] == step) {
        ids[i] = bench.service->submit(script.requests[i], events[i].events_to()).value();
      }
      const auto cancel = script.cancels.find(i);
      if (cancel != script.cancels.end() && cancel->second == step && ids.contains(i)) {
        bench.service->cancel(ids[i]);
      }
    }
    const bool did_something = bench.service->step();
    EXPECT_EQ(bench.service->check_integrity(), "");
    if (testing::Test::HasFailure()) return events;
    if (!did_something && step > 60) break;
  }
  EXPECT_EQ(bench.executor->kv().num_sequences(), 0) << "a sequence is left behind";
  EXPECT_EQ(bench.executor->kv().check_integrity(), "");
  return events;
}

struct Case {
  const char* name;
  std::int64_t pages;
  std::uint64_t failing_step;
  SchedulerConfig scheduler;
};
class RunAhead : public testing::TestWithParam<Case> {};

TEST_P(RunAhead, changes_nobodys_tokens) {
  int most = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const Script script = script_of(seed);
    Bench one(1, GetParam().pages, GetParam().scheduler);
    Bench two(2, GetParam().pages, GetParam().scheduler);
    auto apart = run(script, one, GetParam().failing_step);
    auto ahead = run(script, two, GetParam().failing_step);
    for (std::size_t i = 0; i < script.requests.size(); ++i) {
      for (int choice = 0; choice < script.requests[i].num_choices; ++choice) {
        const auto& a = apart[i].tokens[choice];
        const auto& b = ahead[i].tokens[choice];
        if (script.cancels.contains(i)) {
          const auto length = std::min(a.size(), b.size());
          EXPECT_TRUE(
              std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(length), b.begin()));
        } else {
          EXPECT_EQ(a, b) << "request " << i << ", choice " << choice;
        }
      }
    }
    most = std::max(most, two.runner->most_seen_in_flight);
    if (HasFailure()) return;
  }
  EXPECT_EQ(most, 2) << "no step was ever planned ahead";
}

INSTANTIATE_TEST_SUITE_P(
    Pools, RunAhead,
    testing::Values(Case{"roomy", 400, 0, {}}, Case{"few_pages", 60, 0, {}},
                    Case{"few_places", 400, 0, {.max_running = 3}},
                    Case{"uncached", 400, 0, {.prefix_caching = PrefixCaching::off}},
                    Case{"a_step_fails", 400, 25, {}},
                    Case{"unchunked", 200, 0, {.chunking = Chunking::off}}),
    [](const auto& test) { return test.param.name; });

TEST(RunAhead, plans_two_steps_for_requests_that_decode) {
  Bench bench(2, 400);
  RecordedEvents events;
  ASSERT_TRUE(bench.service->submit(
      {.prompt = {1, 2, 3}, .max_tokens = 20, .end_of_sequence = EndOfSequence::ignored},
      events.events_to()));
  while (bench.service->step()) {
  }
  EXPECT_EQ(events.tokens[0].size(), 20u);
  EXPECT_EQ(bench.runner->most_seen_in_flight, 2);
  EXPECT_EQ(bench.runner->steps.size(), 20u) << "a step was computed for nothing";
}

TEST(RunAhead, waits_for_tokens_that_masks_depend_on) {
  Bench bench(2, 400);
  RecordedEvents events;
  ServiceRequest request{.prompt = {1}, .max_tokens = 6, .end_of_sequence = EndOfSequence::ignored};
  request.allowed = [](std::span<const std::int32_t>) {
    return std::vector<std::uint32_t>{0xFFu, 0u};
  };
  ASSERT_TRUE(bench.service->submit(request, events.events_to()));
  while (bench.service->step()) {
  }
  EXPECT_EQ(bench.runner->most_seen_in_flight, 1);
  EXPECT_EQ(events.tokens[0].size(), 6u);
}

TEST(RunAhead, leaves_the_executor_at_rest_when_a_service_goes) {
  Bench bench(2, 400);
  RecordedEvents events;
  ASSERT_TRUE(bench.service->submit(
      {.prompt = {1, 2, 3}, .max_tokens = 20, .end_of_sequence = EndOfSequence::ignored},
      events.events_to()));
  for (int i = 0; i < 5; ++i) bench.service->step();
  bench.service.reset();
  const SequenceId sequence = bench.executor->kv().create();
  ASSERT_TRUE(bench.executor->kv().reserve(sequence, 1));
  EXPECT_NO_THROW(
      bench.executor->collect(bench.executor->submit({{.sequence = sequence, .tokens = {1}}})));
}

}  // namespace
}  // namespace gauntlet::engine::inline serving
