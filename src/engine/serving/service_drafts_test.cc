// Does a request get the same tokens when they are guessed, whoever guesses, whatever happens?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "core/random.h"
#include "engine/serving/recorded_events.h"
#include "engine/serving/service.h"
#include "engine/speculation/ngram.h"
#include "engine/speculation/self_drafter.h"
#include "engine/steps/fake_runner.h"
#include "engine/steps/pooled_executor.h"

namespace gauntlet::engine::inline serving {
namespace {

constexpr std::int32_t kDraftEos = 7;
constexpr std::int64_t kDraftVocab = 64;

/// Tokens that depend on the last three, so that texts repeat themselves, with an end now and then.
std::int32_t guessable_token(const FakeRunner::History& history) {
  std::uint64_t hash = 5;
  const std::size_t seen = std::min<std::size_t>(history.size(), 3);
  for (std::size_t i = history.size() - seen; i < history.size(); ++i) {
    hash = mix64(hash ^ static_cast<std::uint64_t>(history[i]));
  }
  return static_cast<std::int32_t>(hash % kDraftVocab);
}

/// What fewer experts say: mostly the same.
std::int32_t approximate_token(const FakeRunner::History& history) {
  const std::int32_t right = guessable_token(history);
  return mix64(history.size()) % 4 == 0 ? (right + 1) % static_cast<std::int32_t>(kDraftVocab)
                                        : right;
}

enum class Guesses { right, all_right, wrong, mixed, hostile, ngram, experts };

/// Guesses right or wrong as its seed has it, more than asked for, and ids that there are not.
class RandomDrafter final : public Drafter {
 public:
  RandomDrafter(Guesses kind, std::uint64_t seed) : kind_(kind), random_(seed) {}
  std::string_view name() const override { return "random"; }

  std::vector<Draft> propose(std::span<const DraftWish> wishes) override {
    std::vector<Draft> drafts;
    for (const DraftWish& wish : wishes) {
      EXPECT_GT(wish.most, 0);
      Draft draft;
      FakeRunner::History text(wish.tokens.begin(), wish.tokens.end());
      const std::uint64_t count = count_for(static_cast<std::uint64_t>(wish.most));
      for (std::uint64_t i = 0; i < count; ++i) {
        draft.push_back(guess(guessable_token(text)));
        text.push_back(draft.back());
      }
      drafts.push_back(std::move(draft));
    }
    return drafts;
  }
  void end(std::int64_t) override { ++ended; }
  int ended = 0;

 private:
  std::uint64_t count_for(std::uint64_t most) {
    if (kind_ == Guesses::all_right) return most;
    return random_.next_below(kind_ == Guesses::hostile ? 20 : most + 1);
  }

  std::int32_t guess(std::int32_t right) {
    switch (kind_) {
      case Guesses::right:
      case Guesses::all_right:
        return right;
      case Guesses::wrong:
        return (right + 1) % static_cast<std::int32_t>(kDraftVocab);
      case Guesses::hostile:
        return static_cast<std::int32_t>(random_.next_below(3 * kDraftVocab)) - 64;
      default:
        return random_.next_below(4) == 0
                   ? static_cast<std::int32_t>(random_.next_below(kDraftVocab))
                   : right;
    }
  }

  const Guesses kind_;
  Random random_;
};

struct DraftScript {
  std::vector<ServiceRequest> requests;
  std::vector<int> arrivals;            // the step before which each is submitted
  std::vector<std::size_t> stop_after;  // tokens after which its listener says stop; 0: never
  std::map<std::size_t, int> cancels;   // request, step
  std::uint64_t failing_step = 0;
};

TokenMask mask_of(std::uint64_t kind) {
  return [kind](std::span<const std::int32_t> output) {
    const std::uint64_t seen = output.empty() ? kind : static_cast<std::uint64_t>(output.back());
    const std::uint64_t bits = mix64(seen + kind) | mix64(seen + kind + 1) | 1;
    return std::vector<std::uint32_t>{static_cast<std::uint32_t>(bits),
                                      static_cast<std::uint32_t>(bits >> 32)};
  };
}

DraftScript draft_script(std::uint64_t seed) {
  Random random(seed);
  DraftScript script;
  const auto count = 3 + random.next_below(8);
  for (std::uint64_t i = 0; i < count; ++i) {
    ServiceRequest request{.max_tokens = static_cast<std::int64_t>(random.next_below(40)),
                           .num_choices = static_cast<int>(1 + random.next_below(2))};
    const auto shared = random.next_below(3);
    for (std::uint64_t t = 0; t < 1 + random.next_below(30); ++t) {
      request.prompt.push_back(static_cast<std::int32_t>((shared * 13 + t * 5) % kDraftVocab));
    }
    if (random.next_below(3) > 0) request.end_of_sequence = EndOfSequence::ignored;
    if (random.next_below(3) == 0) request.allowed = mask_of(random.next_below(4));
    if (random.next_below(8) == 0) script.cancels[i] = static_cast<int>(random.next_below(40));
    script.stop_after.push_back(random.next_below(4) == 0 ? 1 + random.next_below(12) : 0);
    script.requests.push_back(std::move(request));
    script.arrivals.push_back(static_cast<int>(random.next_below(25)));
  }
  if (random.next_below(4) == 0) script.failing_step = 1 + random.next_below(30);
  return script;
}

using MakesDrafter = std::function<std::shared_ptr<Drafter>(Executor& target)>;

MakesDrafter random_drafter(Guesses kind, std::uint64_t seed) {
  return [=](Executor&) { return std::make_shared<RandomDrafter>(kind, seed); };
}

MakesDrafter drafter_for(Guesses kind, std::uint64_t seed) {
  if (kind == Guesses::ngram) return [](Executor&) { return std::make_shared<NgramDrafter>(); };
  if (kind == Guesses::experts) {
    return [](Executor& target) { return std::make_shared<SelfDrafter>(target, 1); };
  }
  return random_drafter(kind, seed);
}

struct DraftBench {
  DraftBench(int in_flight, std::int64_t pages, const SchedulerConfig& scheduler,
             const MakesDrafter& drafter, std::int64_t most,
             DraftLengths lengths = DraftLengths::fixed) {
    model::ModelConfig config;
    config.name = "fake";
    config.vocab = kDraftVocab;
    config.max_positions = 120;
    config.sliding_window = 8;
    config.eos_ids = {kDraftEos};
    auto made = std::make_unique<FakeRunner>(
        config, StepLimits{.tokens = 24, .items = 24, .page_tokens = 4, .experts_per_token = 4},
        in_flight);
    made->next = guessable_token;
    made->next_approximately = approximate_token;
    runner = made.get();
    executor = std::make_unique<PooledExecutor>(
        KvPoolConfig{.page_tokens = 4, .window = 8, .full_pages = pages, .sliding_pages = pages},
        std::move(made));
    SchedulerConfig limits = scheduler;
    limits.max_step_tokens = 24;
    service = std::make_unique<Service>(
        *executor, ServiceConfig{.scheduler = limits,
                                 .speculation = {.drafter = drafter ? drafter(*executor) : nullptr,
                                                 .max_drafts = most,
                                                 .lengths = lengths}});
  }
  FakeRunner* runner = nullptr;
  std::unique_ptr<PooledExecutor> executor;
  std::unique_ptr<Service> service;
};

using Transcript = std::map<std::pair<std::size_t, int>, std::vector<std::int32_t>>;

struct DraftRun {
  Transcript tokens;
  std::vector<RecordedEvents> events;
};

DraftRun run(const DraftScript& script, DraftBench& bench) {
  DraftRun result{.events = std::vector<RecordedEvents>(script.requests.size())};
  std::map<std::size_t, RequestId> ids;
  std::uint64_t finished = 0;
  bench.runner->before_finish = [&](const StepData& step) {
    if (step.experts_per_token > 0) return;
    if (++finished == script.failing_step) throw std::runtime_error("a step broke once");
  };
  for (int step = 0; step < 4000; ++step) {
    for (std::size_t i = 0; i < script.requests.size(); ++i) {
      if (script.arrivals[i] == step) {
        RequestEvents listens = result.events[i].events_to();
        listens.on_token = [&script, &events = result.events[i], i,
                            record = listens.on_token](const TokenEvent& event) {
          record(event);
          return events.tokens[event.choice].size() == script.stop_after[i] ? Verdict::stop
                                                                            : Verdict::go_on;
        };
        ids[i] = bench.service->submit(script.requests[i], std::move(listens)).value();
      }
      const auto cancel = script.cancels.find(i);
      if (cancel != script.cancels.end() && cancel->second == step && ids.contains(i)) {
        bench.service->cancel(ids[i]);
      }
    }
    const bool did_something = bench.service->step();
    EXPECT_EQ(bench.service->check_integrity(), "");
    if (testing::Test::HasFailure()) return result;
    if (!did_something && step > 45) break;
  }
  EXPECT_EQ(bench.executor->kv().num_sequences(), 0) << "a sequence is left behind";
  EXPECT_EQ(bench.runner->approximations_seen, 0) << "what fewer experts computed was seen";
  for (std::size_t i = 0; i < script.requests.size(); ++i) {
    for (int choice = 0; choice < script.requests[i].num_choices; ++choice) {
      result.tokens[{i, choice}] = result.events[i].tokens[choice];
    }
  }
  return result;
}

void expect_equal(const DraftScript& script, DraftRun& plain, DraftRun& guessed) {
  for (const auto& [key, expected] : plain.tokens) {
    const auto& tokens = guessed.tokens[key];
    const auto [i, choice] = key;
    // A step that breaks ends a request that was alone in it.
    const bool is_cut = script.cancels.contains(i) ||
                        plain.events[i].reason(choice) == FinishReason::failed ||
                        guessed.events[i].reason(choice) == FinishReason::failed;
    if (!is_cut) {
      EXPECT_EQ(expected, tokens) << "request " << i << ", choice " << choice;
      EXPECT_EQ(plain.events[i].reason(choice), guessed.events[i].reason(choice));
      continue;
    }
    const auto length = static_cast<std::ptrdiff_t>(std::min(expected.size(), tokens.size()));
    EXPECT_TRUE(std::equal(expected.begin(), expected.begin() + length, tokens.begin()));
  }
}

struct DraftCase {
  const char* name;
  Guesses guesses;
  std::int64_t pages = 400;
  int in_flight = 1;
  SchedulerConfig scheduler = {};
  DraftLengths lengths = DraftLengths::fixed;
};
class Speculation : public testing::TestWithParam<DraftCase> {};

TEST_P(Speculation, changes_nobodys_tokens) {
  const DraftCase& here = GetParam();
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  std::int64_t preempted = 0;
  std::int64_t reused = 0;
  int most_in_flight = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const DraftScript script = draft_script(seed);
    DraftBench without(here.in_flight, here.pages, here.scheduler, nullptr, 0);
    DraftBench with(here.in_flight, here.pages, here.scheduler, drafter_for(here.guesses, seed),
                    static_cast<std::int64_t>(1 + seed % 7), here.lengths);
    DraftRun plain = run(script, without);
    DraftRun guessed = run(script, with);
    expect_equal(script, plain, guessed);
    if (HasFailure()) return;
    const ServiceStats stats = with.service->stats();
    EXPECT_EQ(stats.draft_fault, "");
    most_in_flight = std::max(most_in_flight, with.runner->most_seen_in_flight);
    drafted += stats.speculation.drafted;
    accepted += stats.speculation.accepted;
    preempted += stats.scheduler.preemptions;
    reused += stats.scheduler.prefix_hits;
  }
  EXPECT_GT(drafted, 500);
  if (here.lengths == DraftLengths::measured) {
    EXPECT_EQ(most_in_flight, here.in_flight);
  }
  if (here.guesses == Guesses::wrong) {
    EXPECT_LT(accepted, drafted / 8) << "only masks can make a wrong guess right";
  } else if (here.guesses == Guesses::right || here.guesses == Guesses::mixed ||
             here.guesses == Guesses::experts) {
    EXPECT_GT(accepted, drafted / 2);
  }
  if (here.pages < 100 && here.pages != 60) {
    EXPECT_GT(preempted, 0);
  }
  if (here.scheduler.prefix_caching == PrefixCaching::on) {
    EXPECT_GT(reused, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Drafters, Speculation,
    testing::Values(
        DraftCase{"right", Guesses::right}, DraftCase{"wrong", Guesses::wrong},
        DraftCase{"mixed", Guesses::mixed}, DraftCase{"hostile", Guesses::hostile},
        DraftCase{"ngram", Guesses::ngram}, DraftCase{"experts", Guesses::experts},
        DraftCase{"experts_few_pages", Guesses::experts, 40},
        DraftCase{"experts_two_in_flight", Guesses::experts, 400, 2, {}, DraftLengths::measured},
        DraftCase{"few_pages", Guesses::mixed, 40},
        DraftCase{"few_places", Guesses::mixed, 400, 1, {.max_running = 3}},
        DraftCase{"uncached", Guesses::mixed, 60, 1, {.prefix_caching = PrefixCaching::off}},
        DraftCase{"two_in_flight", Guesses::mixed, 400, 2},
        DraftCase{"two_in_flight_measured", Guesses::mixed, 400, 2, {}, DraftLengths::measured},
        DraftCase{"two_in_flight_few_pages", Guesses::wrong, 40, 2},
        DraftCase{"unchunked", Guesses::mixed, 200, 1, {.chunking = Chunking::off}},
        DraftCase{"fixed",
                  Guesses::mixed,
                  400,
                  1,
                  {.batching = Batching::fixed, .fixed_slots = FixedSlots::kept}}),
    [](const auto& test) { return test.param.name; });

TEST(Speculation, hashes_and_commits_only_what_was_accepted_and_said) {
  DraftBench bench(1, 400, {}, random_drafter(Guesses::all_right, 1), 7);
  RecordedEvents events;
  RequestEvents listens = events.events_to();
  listens.on_token = [record = listens.on_token, &events](const TokenEvent& event) {
    record(event);
    return events.tokens[0].size() == 5 ? Verdict::stop : Verdict::go_on;
  };
  const std::vector<std::int32_t> prompt = {1, 2, 3};
  ASSERT_TRUE(bench.service->submit(
      {.prompt = prompt, .max_tokens = 20, .end_of_sequence = EndOfSequence::ignored}, listens));
  while (bench.service->step()) {
  }
  EXPECT_EQ(events.tokens[0].size(), 5u);
  EXPECT_EQ(events.reason(), FinishReason::stop);
  EXPECT_EQ(bench.runner->steps.size(), 2u) << "a prompt, and one step with seven guesses";
  EXPECT_EQ(events.ends[0].speculation.accepted, 4);
  // Seven positions are known after the stop's token; a page of four is whole, not two.
  RecordedEvents again;
  std::vector<std::int32_t> longer = prompt;
  FakeRunner::History history(prompt);
  for (int i = 0; i < 12; ++i) history.push_back(guessable_token(history));
  ASSERT_TRUE(bench.service->submit({.prompt = history, .max_tokens = 1}, again.events_to()));
  while (bench.service->step()) {
  }
  EXPECT_EQ(again.ends[0].reused_tokens, 4);
}

TEST(Speculation, goes_on_without_a_drafter_that_throws) {
  struct Broken final : Drafter {
    std::string_view name() const override { return "broken"; }
    std::vector<Draft> propose(std::span<const DraftWish>) override {
      throw std::runtime_error("no guess to be had");
    }
  };
  DraftBench bench(1, 400, {}, [](Executor&) { return std::make_shared<Broken>(); }, 3);
  RecordedEvents events;
  ASSERT_TRUE(bench.service->submit(
      {.prompt = {1, 2}, .max_tokens = 9, .end_of_sequence = EndOfSequence::ignored},
      events.events_to()));
  while (bench.service->step()) {
  }
  EXPECT_EQ(events.tokens[0].size(), 9u);
  EXPECT_EQ(bench.service->stats().draft_fault, "no guess to be had");
}

TEST(Speculation, goes_on_when_a_step_of_fewer_experts_breaks) {
  DraftBench bench(1, 400, {}, drafter_for(Guesses::experts, 0), 3);
  bench.runner->before_finish = [&](const StepData& step) {
    if (step.experts_per_token > 0) throw std::runtime_error("too few experts");
  };
  RecordedEvents events;
  ASSERT_TRUE(bench.service->submit(
      {.prompt = {1, 2}, .max_tokens = 9, .end_of_sequence = EndOfSequence::ignored},
      events.events_to()));
  while (bench.service->step()) {
    EXPECT_EQ(bench.service->check_integrity(), "");
  }
  FakeRunner::History history = {1, 2};
  for (int i = 0; i < 9; ++i) history.push_back(guessable_token(history));
  EXPECT_EQ(events.tokens[0], FakeRunner::History(history.begin() + 2, history.end()));
  EXPECT_EQ(bench.service->stats().draft_fault, "too few experts");
  EXPECT_EQ(bench.runner->approximations_seen, 0);
}

TEST(Speculation, leaves_requests_with_penalties_alone) {
  DraftBench bench(1, 400, {}, random_drafter(Guesses::right, 1), 3);
  RecordedEvents events;
  ASSERT_TRUE(bench.service->submit({.prompt = {1, 2},
                                     .max_tokens = 3,
                                     .adjustments = {.presence_penalty = 1},
                                     .end_of_sequence = EndOfSequence::ignored},
                                    events.events_to()));
  while (bench.service->step()) {
  }
  EXPECT_EQ(bench.service->stats().speculation.drafted, 0);
}

}  // namespace
}  // namespace gauntlet::engine::inline serving
