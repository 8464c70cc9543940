// Does each request get what it would get alone, and does its end leave nothing behind?
#include "engine/serving/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "engine/serving/recorded_events.h"
#include "engine/steps/fake_executor.h"

namespace gauntlet::engine::inline serving {
namespace {

using Ids = std::vector<std::int32_t>;
using testing::HasSubstr;

constexpr std::int32_t kEos = 500;

model::ModelConfig small_config() {
  return {.name = "fake", .vocab = 512, .max_positions = 200, .eos_ids = {kEos}};
}

struct Services : testing::Test {
  FakeExecutor executor{small_config(), 32};
  Service service{executor, {}};

  RequestId submit(RecordedEvents& heard, ServiceRequest request) {
    return service.submit(std::move(request), heard.events_to()).value();
  }
  void drain() {
    for (int i = 0; i < 5000 && service.step(); ++i) ASSERT_EQ(service.check_integrity(), "");
    EXPECT_FALSE(service.step()) << "it does not come to an end";
    EXPECT_EQ(executor.kv().num_sequences(), 0);
    EXPECT_EQ(service.stats().kv_usage, 0);
  }
};

TEST_F(Services, stream_tokens_with_log_probabilities_and_an_end) {
  RecordedEvents heard;
  submit(heard, {.prompt = {1, 2, 3}, .max_tokens = 4});
  drain();
  EXPECT_EQ(heard.tokens[0], (Ids{4, 5, 6, 7}));
  EXPECT_EQ(heard.reason(), FinishReason::length);
  EXPECT_EQ(heard.ends[0].prompt_tokens, 3);
  EXPECT_EQ(heard.ends[0].output_tokens, 4);
  EXPECT_EQ(service.stats().output_tokens, 4);
  EXPECT_EQ(service.stats().prompt_tokens, 3);
}

TEST(Service, a_kept_slot_changes_nobodys_tokens_and_is_not_counted_as_output) {
  FakeExecutor executor{small_config(), 32};
  Service service{executor,
                  {.scheduler = {.batching = Batching::fixed, .fixed_slots = FixedSlots::kept}}};
  RecordedEvents brief, lasting;
  ASSERT_TRUE(service.submit({.prompt = {1, 2, 3}, .max_tokens = 2}, brief.events_to()));
  ASSERT_TRUE(service.submit({.prompt = {10}, .max_tokens = 6}, lasting.events_to()));
  while (service.step()) {
    ASSERT_EQ(service.check_integrity(), "");
    const bool is_done = lasting.tokens[0].size() == 6;
    EXPECT_EQ(service.stats().num_running, is_done ? 0 : 2) << "the batch keeps its shape";
  }
  EXPECT_EQ(brief.tokens[0], (Ids{4, 5}));
  EXPECT_EQ(lasting.tokens[0], (Ids{11, 12, 13, 14, 15, 16}));
  EXPECT_EQ(service.stats().output_tokens, 8);
  EXPECT_EQ(service.stats().steps, 6);
  EXPECT_EQ(executor.kv().num_sequences(), 0);
}

TEST_F(Services, end_at_eos_at_a_stop_id_and_at_a_verdict) {
  RecordedEvents eos, ignoring, stop, verdict;
  submit(eos, {.prompt = {kEos - 2}});
  submit(ignoring,
         {.prompt = {kEos - 2}, .max_tokens = 5, .end_of_sequence = EndOfSequence::ignored});
  submit(stop, {.prompt = {10}, .stop_ids = {13, 12}});
  RequestEvents events = verdict.events_to();
  events.on_token = [&](const TokenEvent& event) {
    verdict.tokens[0].push_back(event.token);
    return event.token == 23 ? Verdict::stop : Verdict::go_on;
  };
  ASSERT_TRUE(service.submit({.prompt = {20}}, events));
  drain();
  EXPECT_EQ(eos.tokens[0], (Ids{kEos - 1, kEos}));
  EXPECT_EQ(eos.reason(), FinishReason::eos);
  EXPECT_EQ(ignoring.tokens[0].size(), 5u);
  EXPECT_EQ(stop.tokens[0], (Ids{11, 12}));
  EXPECT_EQ(stop.reason(), FinishReason::stop);
  EXPECT_EQ(verdict.tokens[0], (Ids{21, 22, 23}));
  EXPECT_EQ(verdict.reason(), FinishReason::stop);
}

TEST_F(Services, ask_for_logits_only_where_they_are_needed) {
  RecordedEvents plain, biased, shown, scored;
  submit(plain, {.prompt = {1}, .max_tokens = 2});
  submit(biased, {.prompt = {1}, .max_tokens = 2, .adjustments = {.bias = {{77, 100.0f}}}});
  submit(shown, {.prompt = {1}, .max_tokens = 2, .top_log_probs = 3});
  submit(scored, {.prompt = {1}, .max_tokens = 2, .top_log_probs = 0});
  drain();
  std::vector<Want> wants;
  for (const auto& item : executor.steps.front().items) wants.push_back(item.want);
  EXPECT_EQ(wants, (std::vector{Want::token, Want::logits, Want::logits, Want::log_probability}));
  EXPECT_EQ(plain.tokens[0], (Ids{2, 3}));
  EXPECT_EQ(biased.tokens[0], (Ids{77, 77}));
  EXPECT_NEAR(biased.events[0].log_probability, std::log(1.0 / 3 / 511), 1e-4) << "as it was";
  ASSERT_EQ(shown.events[0].top.size(), 3u);
  EXPECT_EQ(shown.events[0].top[0].token, 2);
  EXPECT_EQ(shown.events[0].log_probability, shown.events[0].top[0].log_probability);
  EXPECT_NEAR(shown.events[0].top[0].log_probability, std::log(2.0 / 3), 1e-4);
  EXPECT_EQ(shown.events[0].top[1].token, 0);
}

TEST_F(Services, penalties_keep_a_request_from_repeating_itself) {
  executor.next = [](const auto&) { return 9; };
  RecordedEvents presence, frequency, repetition;
  // The likely logit is log(1022), 6.93, above the others, which are 0.
  submit(presence, {.prompt = {9}, .max_tokens = 3, .adjustments = {.presence_penalty = 7}});
  submit(frequency, {.prompt = {9}, .max_tokens = 4, .adjustments = {.frequency_penalty = 3}});
  submit(repetition, {.prompt = {5}, .max_tokens = 2, .adjustments = {.repetition_penalty = 1e9f}});
  drain();
  EXPECT_EQ(presence.tokens[0], (Ids{9, 0, 1}));
  EXPECT_EQ(frequency.tokens[0], (Ids{9, 9, 9, 0}));
  EXPECT_EQ(repetition.tokens[0], (Ids{9, 9})) << "a positive logit stays above 0";
}

TEST_F(Services, draw_only_what_a_mask_allows_and_a_broken_mask_ends_its_request) {
  const auto only = [](std::int32_t token) {
    std::vector<std::uint32_t> mask(16, 0);
    mask[token / 32] = 1u << (token % 32);
    return mask;
  };
  const auto in_turn = [&](std::span<const std::int32_t> output) {
    return only(100 + static_cast<std::int32_t>(output.size()));
  };
  RecordedEvents masked, adjusted, broken, plain;
  submit(masked, {.prompt = {1}, .max_tokens = 3, .allowed = in_turn});
  submit(
      adjusted,
      {.prompt = {1}, .max_tokens = 3, .adjustments = {.presence_penalty = 1}, .allowed = in_turn});
  submit(broken, {.prompt = {1}, .allowed = [](auto) { return std::vector<std::uint32_t>(1); }});
  submit(plain, {.prompt = {1}, .max_tokens = 3});
  drain();
  EXPECT_EQ(masked.tokens[0], (Ids{100, 101, 102}));
  EXPECT_EQ(adjusted.tokens[0], (Ids{100, 101, 102}));
  EXPECT_EQ(broken.reason(), FinishReason::failed);
  EXPECT_EQ(plain.tokens[0], (Ids{2, 3, 4}));
}

TEST(Service, gives_all_pages_back_when_it_goes_in_the_middle) {
  FakeExecutor executor(small_config(), 32);
  for (const PrefixCaching caching : {PrefixCaching::on, PrefixCaching::off}) {
    Service service(executor, {.scheduler = {.prefix_caching = caching}});
    ASSERT_TRUE(service.submit({.prompt = Ids(40, 3)}, {}));
    service.step();
  }
  EXPECT_EQ(executor.kv().num_sequences(), 0);
  EXPECT_EQ(executor.kv().free_pages(KvGroup::full), 1000);
  EXPECT_EQ(executor.kv().free_pages(KvGroup::sliding), 1000);
}

TEST_F(Services, choices_share_the_prompt_and_draw_with_seeds_of_their_own) {
  executor.next = [](const auto& history) { return static_cast<std::int32_t>(history.size()); };
  RecordedEvents heard;
  submit(heard, {.prompt = Ids(21, 7),
                 .max_tokens = 12,
                 .sampling = {.temperature = 1, .seed = 3},
                 .end_of_sequence = EndOfSequence::ignored,
                 .num_choices = 3});
  drain();
  ASSERT_EQ(heard.ends.size(), 3u);
  EXPECT_NE(heard.tokens[0], heard.tokens[1]);
  EXPECT_NE(heard.tokens[1], heard.tokens[2]);
  EXPECT_EQ(heard.ends[0].reused_tokens, 0);
  EXPECT_EQ(heard.ends[1].reused_tokens, 20);
}

TEST_F(Services, cancelling_frees_all_pages_before_the_next_step) {
  RecordedEvents gone, stays;
  const RequestId id = submit(gone, {.prompt = Ids(20, 7), .num_choices = 2});
  submit(stays, {.prompt = {1}, .max_tokens = 10});
  for (int i = 0; i < 4; ++i) service.step();
  EXPECT_EQ(executor.kv().num_sequences(), 3);
  service.cancel(id);
  service.cancel(id);
  service.cancel(12345);
  service.step();
  EXPECT_EQ(executor.kv().num_sequences(), 1);
  EXPECT_EQ(gone.reason(0), FinishReason::cancelled);
  EXPECT_EQ(gone.reason(1), FinishReason::cancelled);
  drain();
  EXPECT_EQ(stays.tokens[0].size(), 10u);
}

TEST_F(Services, a_fault_ends_one_request) {
  executor.next = [](const auto& history) -> std::int32_t {
    if (history.front() == 66) return kNoChoice;
    if (history.front() == 77 && history.size() == 4) throw std::runtime_error("broken");
    return history.back() + 1;
  };
  RecordedEvents good, broken, without_choice;
  submit(good, {.prompt = {1}, .max_tokens = 8});
  submit(broken, {.prompt = {77}, .max_tokens = 8});
  submit(without_choice, {.prompt = {66}, .max_tokens = 8});
  RequestEvents throwing;
  throwing.on_token = [](const TokenEvent&) -> Verdict { throw std::runtime_error("mine"); };
  throwing.on_finish = [](const FinishEvent&) { throw std::runtime_error("mine too"); };
  ASSERT_TRUE(service.submit({.prompt = {1}}, throwing));
  drain();
  EXPECT_EQ(good.tokens[0], (Ids{2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(broken.reason(), FinishReason::failed);
  EXPECT_THAT(broken.ends[0].error, HasSubstr("broken"));
  EXPECT_EQ(broken.tokens[0].size(), 3u);
  EXPECT_EQ(without_choice.reason(), FinishReason::failed);
}

TEST_F(Services, a_step_that_fails_is_halved_until_the_fault_is_alone) {
  constexpr int kRequests = 32;
  executor.next = [](const auto& history) -> std::int32_t {
    if (history.front() == 77) throw std::runtime_error("broken");
    return history.back() + 1;
  };
  std::vector<RecordedEvents> heard(kRequests);
  for (int i = 0; i < kRequests; ++i) {
    submit(heard[i], {.prompt = {i == 20 ? 77 : 100 + i}, .max_tokens = 2});
  }
  service.step();
  // The whole, and two halves of each part that holds the fault.
  EXPECT_EQ(executor.steps.size(), 1u + 2 * 5);
  drain();
  for (int i = 0; i < kRequests; ++i) {
    EXPECT_EQ(heard[i].reason(), i == 20 ? FinishReason::failed : FinishReason::length) << i;
  }
}

TEST_F(Services, a_request_that_fails_alone_leaves_the_service_to_others) {
  executor.next = [](const auto& history) -> std::int32_t {
    if (history.front() == 77) throw std::runtime_error("broken");
    return history.back() + 1;
  };
  for (int i = 0; i < 10; ++i) {
    RecordedEvents broken;
    submit(broken, {.prompt = {77}});
    service.step();
    EXPECT_EQ(broken.reason(), FinishReason::failed);
  }
  RecordedEvents good;
  submit(good, {.prompt = {1}, .max_tokens = 2});
  drain();
  EXPECT_EQ(good.tokens[0], (Ids{2, 3}));
}

TEST_F(Services, an_executor_that_fails_whatever_it_is_given_ends_everything_once) {
  RecordedEvents runs, arrives;
  submit(runs, {.prompt = {1}});
  service.step();
  executor.before_step = [] { throw std::runtime_error("the device is lost"); };
  EXPECT_THROW(service.step(), std::runtime_error);
  EXPECT_EQ(runs.reason(), FinishReason::failed);
  EXPECT_EQ(executor.kv().num_sequences(), 0);
  submit(arrives, {.prompt = {1}, .num_choices = 2});
  service.fail("the device is lost");
  EXPECT_EQ(arrives.reason(0), FinishReason::failed);
  EXPECT_EQ(arrives.reason(1), FinishReason::failed);
  EXPECT_THAT(arrives.ends[0].error, HasSubstr("the device is lost"));
  const auto refused = service.submit({.prompt = {1}}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::check_failed);
}

TEST_F(Services, a_mask_that_throws_while_a_token_is_chosen_ends_its_request) {
  int calls = 0;
  const auto fickle = [&](std::span<const std::int32_t>) -> std::vector<std::uint32_t> {
    if (++calls == 2) throw std::runtime_error("fickle");
    return {};
  };
  RecordedEvents broken, plain;
  submit(broken, {.prompt = {1}, .adjustments = {.presence_penalty = 1}, .allowed = fickle});
  submit(plain, {.prompt = {1}, .max_tokens = 3});
  drain();
  EXPECT_EQ(broken.reason(), FinishReason::failed);
  EXPECT_THAT(broken.ends[0].error, HasSubstr("fickle"));
  EXPECT_EQ(plain.tokens[0], (Ids{2, 3, 4}));
}

TEST(Service, gives_back_every_page_of_a_cancelled_request_within_one_step) {
  FakeExecutor executor(small_config(), 64);
  Service service(executor, {.scheduler = {.prefix_caching = PrefixCaching::off}});
  RecordedEvents gone;
  const auto id = service.submit({.prompt = Ids(50, 7), .num_choices = 3}, gone.events_to());
  for (int i = 0; i < 6; ++i) service.step();
  EXPECT_LT(executor.kv().free_pages(KvGroup::full), 1000 - 3 * 12);
  service.cancel(id.value());
  service.step();
  EXPECT_EQ(gone.ends.size(), 3u);
  EXPECT_EQ(executor.kv().free_pages(KvGroup::full), 1000);
  EXPECT_EQ(executor.kv().free_pages(KvGroup::sliding), 1000);
  EXPECT_EQ(service.check_integrity(), "");
}

TEST_F(Services, refuse_what_can_never_be_served) {
  const auto error = [&](ServiceRequest request) {
    const auto result = service.submit(std::move(request), {});
    EXPECT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::wrong_use);
    return result ? "" : result.error().message;
  };
  EXPECT_THAT(error({}), HasSubstr("no tokens"));
  EXPECT_THAT(error({.prompt = Ids(201, 1)}), HasSubstr("201 tokens, but at most 200"));
  EXPECT_THAT(error({.prompt = {512}}), HasSubstr("512"));
  EXPECT_THAT(error({.prompt = {-1}}), HasSubstr("-1"));
  EXPECT_THAT(error({.prompt = {1}, .max_tokens = -1}), HasSubstr("-1 tokens"));
  EXPECT_THAT(error({.prompt = {1}, .sampling = {.top_p = 0}}), HasSubstr("top-p"));
  EXPECT_THAT(error({.prompt = {1}, .adjustments = {.presence_penalty = NAN}}),
              HasSubstr("presence"));
  EXPECT_THAT(error({.prompt = {1}, .adjustments = {.repetition_penalty = 0}}),
              HasSubstr("repetition"));
  EXPECT_THAT(error({.prompt = {1}, .adjustments = {.bias = {{512, 1.0f}}}}), HasSubstr("512"));
  EXPECT_THAT(error({.prompt = {1}, .num_choices = 0}), HasSubstr("choices"));
  EXPECT_THAT(error({.prompt = {1}, .top_log_probs = -1}), HasSubstr("log-probabilities"));
  EXPECT_THAT(error({.prompt = {1}, .prompt_log_probs = 513}), HasSubstr("log-probabilities"));
}

TEST_F(Services, make_no_more_tokens_than_there_are_positions) {
  RecordedEvents heard;
  submit(heard, {.prompt = Ids(198, 1), .max_tokens = std::int64_t{1} << 62});
  drain();
  EXPECT_EQ(heard.tokens[0].size(), 3u);
  EXPECT_EQ(heard.reason(), FinishReason::length);
}

TEST(Service, says_when_the_queue_is_full_and_when_a_request_waited_too_long) {
  FakeExecutor executor(small_config(), 32);
  double now_s = 0;
  Service service(executor, {.scheduler = {.max_running = 1, .max_queue = 2, .max_wait_s = 5},
                             .now_s = [&] { return now_s; }});
  RecordedEvents runs, waits;
  ASSERT_TRUE(service.submit({.prompt = {1}, .max_tokens = 100}, runs.events_to()));
  service.step();
  ASSERT_TRUE(service.submit({.prompt = {1}, .num_choices = 2}, waits.events_to()));
  const auto refused = service.submit({.prompt = {1}}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::environment);
  EXPECT_THAT(refused.error().message, HasSubstr("2 requests wait"));
  now_s = 6;
  service.step();
  EXPECT_EQ(waits.reason(0), FinishReason::expired);
  EXPECT_EQ(waits.reason(1), FinishReason::expired);
  EXPECT_TRUE(service.submit({.prompt = {1}}, {}));
}

TEST(Service, takes_requests_and_cancels_from_many_threads) {
  FakeExecutor executor(small_config(), 32);
  Service service(executor, {.scheduler = {.max_running = 16, .max_queue = 10000}});
  std::atomic<int> ended = 0;
  std::vector<std::jthread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; i < 50; ++i) {
        const auto id = service.submit(
            {.prompt = Ids(static_cast<std::size_t>(1 + i % 9), c + 1), .max_tokens = 5},
            {.on_finish = [&](const FinishEvent&) { ++ended; }});
        if (i % 3 == 0) service.cancel(id.value());
      }
    });
  }
  for (int i = 0; i < 20000 && ended < 200; ++i) {
    if (!service.step()) service.wait(0.01);
  }
  EXPECT_EQ(ended, 200);
  EXPECT_EQ(service.check_integrity(), "");
  EXPECT_EQ(service.stats().num_running, 0);
}

}  // namespace
}  // namespace gauntlet::engine::inline serving
