// Does a request get the same tokens when they are guessed, whoever guesses, whatever happens?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "core/random.h"
#include "engine/serving/drafter_scenario.h"
#include "engine/serving/recorded_events.h"

namespace gauntlet::engine::inline serving {
namespace {

struct DraftScript {
  std::vector<ServiceRequest> requests;
  std::vector<int> arrivals;            // the step before which each is submitted
  std::vector<std::size_t> stop_after;  // tokens after which its listener says stop; 0: never
  std::map<std::size_t, int> cancels;   // request, step
  std::uint64_t failing_step = 0;
};

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
  Shape shape = Shape::chain;
};
constexpr DraftLengths kFixed = DraftLengths::fixed;
constexpr TreeShape kTree{.width = 3, .depth = 5};
class Speculation : public testing::TestWithParam<DraftCase> {};

TEST_P(Speculation, changes_nobodys_tokens) {
  const DraftCase& here = GetParam();
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  std::int64_t preempted = 0;
  std::int64_t reused = 0;
  int most_in_flight = 0;
  std::int64_t trees = 0;
  std::int64_t moves = 0;
  const bool is_tree = here.shape == Shape::tree;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const DraftScript script = draft_script(seed);
    DraftBench without(here.in_flight, here.pages, here.scheduler, nullptr, 0);
    DraftBench with(here.in_flight, here.pages, here.scheduler,
                    drafters_for(here.guesses, seed, here.shape),
                    static_cast<std::int64_t>(1 + seed % (is_tree ? 17 : 7)), here.lengths, {},
                    is_tree ? kTree : TreeShape());
    DraftRun plain = run(script, without);
    DraftRun guessed = run(script, with);
    expect_equal(script, plain, guessed);
    if (HasFailure()) return;
    const ServiceStats stats = with.service->stats();
    EXPECT_EQ(stats.draft_fault, "");
    most_in_flight = std::max(most_in_flight, with.runner->most_seen_in_flight);
    drafted += stats.speculation.drafted;
    accepted += stats.speculation.accepted;
    for (const StepData& step : with.runner->steps) {
      trees += !step.ancestors.empty();
      moves += std::ssize(step.moves);
    }
    preempted += stats.scheduler.preemptions;
    reused += stats.scheduler.prefix_hits;
  }
  EXPECT_GT(drafted, 500);
  // Who is asked, and how often, is the clock's to say where lengths are measured.
  const bool is_sure = here.lengths == DraftLengths::fixed;
  EXPECT_TRUE(is_tree ? trees > 50 || !is_sure : trees == 0) << trees;
  if (is_tree && is_sure && here.guesses != Guesses::wrong) {
    EXPECT_GT(moves, 10);
  }
  if (here.lengths == DraftLengths::measured) {
    EXPECT_EQ(most_in_flight, here.in_flight);
  }
  if (here.guesses == Guesses::wrong) {
    EXPECT_LT(accepted, drafted / 8) << "only masks can make a wrong guess right";
  } else if (here.guesses == Guesses::right || here.guesses == Guesses::mixed ||
             here.guesses == Guesses::experts) {
    EXPECT_GT(accepted, drafted / (is_tree ? 4 : 2));
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
        DraftCase{"fed", Guesses::fed},
        DraftCase{"fed_measured", Guesses::fed, 400, 1, {}, DraftLengths::measured},
        DraftCase{"late", Guesses::late}, DraftCase{"late_two_in_flight", Guesses::late, 400, 2},
        DraftCase{"late_few_pages", Guesses::late, 28, 2},
        DraftCase{"late_measured", Guesses::late, 400, 2, {}, DraftLengths::measured},
        DraftCase{"several", Guesses::several},
        DraftCase{"several_few_pages", Guesses::several, 40},
        DraftCase{"several_measured", Guesses::several, 400, 2, {}, DraftLengths::measured},
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

INSTANTIATE_TEST_SUITE_P(
    Trees, Speculation,
    testing::Values(
        DraftCase{"right", Guesses::right, 400, 1, {}, kFixed, Shape::tree},
        DraftCase{"wrong", Guesses::wrong, 400, 1, {}, kFixed, Shape::tree},
        DraftCase{"mixed", Guesses::mixed, 400, 1, {}, kFixed, Shape::tree},
        DraftCase{"hostile", Guesses::hostile, 400, 1, {}, kFixed, Shape::tree},
        DraftCase{"ngram", Guesses::ngram, 400, 1, {}, kFixed, Shape::tree},
        DraftCase{"fed", Guesses::fed, 400, 1, {}, kFixed, Shape::tree},
        DraftCase{"several", Guesses::several, 400, 1, {}, kFixed, Shape::tree},
        DraftCase{"several_few_pages", Guesses::several, 40, 1, {}, kFixed, Shape::tree},
        DraftCase{
            "several_measured", Guesses::several, 400, 2, {}, DraftLengths::measured, Shape::tree},
        DraftCase{"few_pages", Guesses::mixed, 40, 1, {}, kFixed, Shape::tree},
        DraftCase{"few_places", Guesses::mixed, 400, 1, {.max_running = 3}, kFixed, Shape::tree},
        DraftCase{"uncached",
                  Guesses::mixed,
                  60,
                  1,
                  {.prefix_caching = PrefixCaching::off},
                  kFixed,
                  Shape::tree},
        DraftCase{"two_in_flight", Guesses::mixed, 400, 2, {}, kFixed, Shape::tree},
        DraftCase{"two_in_flight_measured",
                  Guesses::mixed,
                  400,
                  2,
                  {},
                  DraftLengths::measured,
                  Shape::tree},
        DraftCase{"two_in_flight_few_pages", Guesses::mixed, 40, 2, {}, kFixed, Shape::tree},
        DraftCase{
            "unchunked", Guesses::mixed, 200, 1, {.chunking = Chunking::off}, kFixed, Shape::tree},
        DraftCase{"fixed",
                  Guesses::mixed,
                  400,
                  1,
                  {.batching = Batching::fixed, .fixed_slots = FixedSlots::kept},
                  kFixed,
                  Shape::tree}),
    [](const auto& test) { return test.param.name; });

TEST(Speculation, brings_a_path_to_its_place_before_the_next_step) {
  /// Two wrong guesses before each right one.
  struct Fork final : Drafter {
    std::string_view name() const override { return "fork"; }
    bool fans_out() const override { return true; }
    std::vector<Draft> propose(std::span<const DraftWish> wishes) override {
      Draft draft;
      FakeRunner::History text(wishes[0].tokens.begin(), wishes[0].tokens.end());
      for (std::int32_t level = 0, parent = -1; level < 3; ++level) {
        const std::int32_t right = guessable_token(text);
        for (const std::int32_t token : {right ^ 1, right ^ 2, right}) draft.add(token, parent);
        text.push_back(right);
        parent = static_cast<std::int32_t>(draft.size()) - 1;
      }
      return {draft};
    }
  };
  DraftBench bench(1, 400, {}, one_drafter(std::make_shared<Fork>()), 9, kFixed, {}, kTree);
  RecordedEvents events;
  ASSERT_TRUE(bench.service->submit(
      {.prompt = {1, 2}, .max_tokens = 9, .end_of_sequence = EndOfSequence::ignored},
      events.events_to()));
  while (bench.service->step()) {
    EXPECT_EQ(bench.service->check_integrity(), "");
  }
  FakeRunner::History text = {1, 2};
  for (const std::int32_t token : events.tokens[0]) {
    EXPECT_EQ(token, guessable_token(text));
    text.push_back(token);
  }
  // The prompt and its token, two trees of three right guesses.
  ASSERT_EQ(bench.runner->steps.size(), 3u);
  EXPECT_EQ(bench.runner->steps[1].tokens.size(), 10u);
  EXPECT_EQ(bench.runner->steps[1].moves.size(), 0u);
  EXPECT_EQ(bench.runner->steps[2].moves.size(), 6u) << "three positions in each group";
  EXPECT_EQ(events.ends[0].speculation.accepted, 6);
  EXPECT_EQ(events.ends[0].speculation.by_position, (std::vector<std::int64_t>{2, 2, 2}));
}

TEST(Speculation, goes_on_without_a_drafter_whose_tree_is_none) {
  struct Loop final : Drafter {
    std::string_view name() const override { return "loop"; }
    bool fans_out() const override { return true; }
    std::vector<Draft> propose(std::span<const DraftWish>) override {
      Draft draft;
      draft.add(1, -1);
      draft.add(2, 1);
      return {draft};
    }
  };
  DraftBench bench(1, 400, {}, one_drafter(std::make_shared<Loop>()), 3, kFixed, {}, kTree);
  RecordedEvents events;
  ASSERT_TRUE(bench.service->submit(
      {.prompt = {1, 2}, .max_tokens = 9, .end_of_sequence = EndOfSequence::ignored},
      events.events_to()));
  while (bench.service->step()) {
  }
  EXPECT_EQ(events.tokens[0].size(), 9u);
  EXPECT_TRUE(bench.service->stats().draft_fault.starts_with("a guess follows one that comes"));
}

TEST(Speculation, hashes_and_commits_only_what_was_accepted_and_said) {
  DraftBench bench(1, 400, {}, drafters_for(Guesses::all_right, 1), 7);
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
  DraftBench bench(1, 400, {}, one_drafter(std::make_shared<Broken>()), 3);
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
  DraftBench bench(1, 400, {}, drafters_for(Guesses::experts, 0), 3);
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

TEST(Speculation, asks_the_next_drafter_where_the_first_has_no_guess_or_is_gone) {
  struct Silent final : Drafter {
    std::string_view name() const override { return "silent"; }
    std::vector<Draft> propose(std::span<const DraftWish> wishes) override {
      if (++asked == 3) throw std::runtime_error("asked too often");
      return std::vector<Draft>(wishes.size());
    }
    int asked = 0;
  };
  const auto silent = std::make_shared<Silent>();
  const auto right = std::make_shared<RandomDrafter>(Guesses::all_right, 1);
  const MakesDrafter both = [&](Executor&) {
    return std::vector<std::shared_ptr<Drafter>>{silent, right};
  };
  DraftBench bench(1, 400, {}, both, 3);
  RecordedEvents events;
  ASSERT_TRUE(bench.service->submit(
      {.prompt = {1, 2}, .max_tokens = 21, .end_of_sequence = EndOfSequence::ignored},
      events.events_to()));
  while (bench.service->step()) {
  }
  EXPECT_EQ(events.tokens[0].size(), 21u);
  EXPECT_EQ(silent->asked, 3);
  EXPECT_EQ(bench.service->stats().draft_fault, "asked too often");
  EXPECT_EQ(events.ends[0].speculation.steps, 5) << "four tokens a step, with either";
  EXPECT_EQ(events.ends[0].speculation.accepted, 15);
}

TEST(Speculation, leaves_guesses_and_residuals_on_a_device_where_no_mask_looks_at_them) {
  for (const bool is_masked : {false, true}) {
    std::shared_ptr<FedDrafter> fed;
    const MakesDrafter makes = [&](Executor& target) -> std::vector<std::shared_ptr<Drafter>> {
      return {fed = std::make_shared<FedDrafter>(1, Shape::chain, target.device_seam())};
    };
    DraftBench bench(2, 400, {}, makes, 3);
    RecordedEvents events;
    ServiceRequest request{
        .prompt = {1, 2}, .max_tokens = 60, .end_of_sequence = EndOfSequence::ignored};
    if (is_masked) request.allowed = mask_of(1);
    ASSERT_TRUE(bench.service->submit(request, events.events_to()));
    while (bench.service->step()) {
    }
    EXPECT_EQ(events.tokens[0].size(), 60u);
    EXPECT_GT(events.ends[0].speculation.drafted, 20);
    EXPECT_GT(fed->on_device, 10);
    EXPECT_EQ(fed->late > 0, !is_masked);
  }
}

TEST(Speculation, exports_nothing_while_guessing_does_not_pay) {
  // Rows cost as much together as apart, and a guess as much as a row: the budget gives up.
  double now_s = 0;
  const auto fed = std::make_shared<FedDrafter>(1);
  DraftBench bench(1, 400, {}, one_drafter(fed), 7, DraftLengths::measured, [&] { return now_s; });
  std::int64_t exporting = 0, steps = 0;
  bench.runner->before_finish = [&](const StepData& step) {
    now_s += static_cast<double>(step.num_tokens());
    exporting += step.num_exported() > 0;
    ++steps;
  };
  for (int i = 0; i < 30; ++i) {
    RecordedEvents events;
    ASSERT_TRUE(bench.service->submit(
        {.prompt = {1, 2}, .max_tokens = 100, .end_of_sequence = EndOfSequence::ignored},
        events.events_to()));
    while (bench.service->step()) {
    }
    EXPECT_EQ(events.tokens[0].size(), 100u);
  }
  EXPECT_GT(fed->asked, 0) << "it was tried";
  EXPECT_GT(exporting, 0);
  EXPECT_LT(exporting, steps / 10);
}

TEST(Speculation, leaves_requests_with_penalties_alone) {
  DraftBench bench(1, 400, {}, drafters_for(Guesses::right, 1), 3);
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
