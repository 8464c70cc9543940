// A request's tokens are the same alone and among others, whatever the batching policy.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "core/random.h"
#include "engine/serving/recorded_events.h"
#include "engine/serving/service.h"
#include "engine/steps/cpu_executor.h"
#include "engine/steps/fake_executor.h"
#include "model/weights.h"

namespace gauntlet::engine::inline serving {
namespace {

using Ids = std::vector<std::int32_t>;

/// Sixteen requests of every kind: lengths, samplers, penalties, some with a common beginning.
std::vector<ServiceRequest> sixteen(std::int64_t vocab) {
  std::vector<ServiceRequest> requests;
  const Random random(5);
  for (std::uint64_t i = 0; i < 16; ++i) {
    ServiceRequest request{.max_tokens = static_cast<std::int64_t>(8 + 3 * i),
                           .end_of_sequence = EndOfSequence::ignored};
    for (std::uint64_t t = 0; t < 5 + i * 4; ++t) {
      const std::uint64_t stream = t < 20 ? i % 3 : i;
      request.prompt.push_back(static_cast<std::int32_t>(
          random.below(static_cast<std::uint64_t>(vocab), stream * 1000 + t)));
    }
    if (i % 2 == 1) request.sampling = {.temperature = 0.9f, .top_p = 0.95f, .seed = i};
    if (i % 4 == 2) request.adjustments = {.presence_penalty = 1, .repetition_penalty = 1.2f};
    if (i % 5 == 3) request.top_log_probs = 2;
    requests.push_back(std::move(request));
  }
  return requests;
}

void expect_same_alone_and_in_company(const std::function<std::unique_ptr<Executor>()>& make,
                                      std::int64_t vocab,
                                      const std::vector<SchedulerConfig>& configs) {
  const auto requests = sixteen(vocab);
  std::vector<Ids> alone;
  const auto executor = make();
  for (const ServiceRequest& request : requests) {
    Service service(*executor, {.scheduler = {.prefix_caching = PrefixCaching::off}});
    RecordedEvents events;
    ASSERT_TRUE(service.submit(request, events.events_to()));
    while (service.step()) {
    }
    alone.push_back(events.tokens[0]);
    ASSERT_EQ(std::ssize(alone.back()), request.max_tokens);
  }
  SchedulerStats all;
  for (const SchedulerConfig& config : configs) {
    Service service(*executor, {.scheduler = config});
    std::vector<RecordedEvents> events(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      ASSERT_TRUE(service.submit(requests[i], events[i].events_to()));
      if (i % 3 == 0) service.step();
    }
    while (service.step()) ASSERT_EQ(service.check_integrity(), "");
    for (std::size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(events[i].tokens[0], alone[i]) << "request " << i;
    }
    all.prefix_hits += service.stats().scheduler.prefix_hits;
    all.preemptions += service.stats().scheduler.preemptions;
  }
  EXPECT_GT(all.prefix_hits, 0) << "the common beginnings were never shared";
  EXPECT_GT(all.preemptions, 0) << "there was room for all";
}

const std::vector<SchedulerConfig> kConfigs = {
    {.max_step_tokens = 24, .max_running = 16},
    {.prefix_caching = PrefixCaching::off, .max_step_tokens = 100, .max_running = 16},
    {.chunking = Chunking::off, .max_step_tokens = 64, .max_running = 5},
    {.batching = Batching::fixed, .fixed_batch = 4}};

TEST(ServiceInvariance, tokens_are_the_same_alone_and_among_fifteen_others) {
  const auto make = [] {
    auto executor = std::make_unique<FakeExecutor>(
        model::ModelConfig{.name = "fake", .vocab = 512, .max_positions = 200}, 128, /*pages=*/60);
    executor->next = [](const auto& history) {
      std::uint64_t hash = 0;
      for (const std::int32_t id : history) hash = mix64(hash + static_cast<std::uint64_t>(id));
      return static_cast<std::int32_t>(hash % 512);
    };
    return executor;
  };
  expect_same_alone_and_in_company(make, 512, kConfigs);
}

TEST(ServiceInvariance, tokens_are_the_same_alone_and_in_company_on_the_cpu) {
  const auto weights =
      model::load_model(std::string(GAUNTLET_SOURCE_DIR) + "/models/gauntlet-tiny").value();
  const auto make = [&] {
    return std::move(
        make_cpu_executor(weights, {.max_sequences = 16, .max_tokens = 64, .max_batch_tokens = 128})
            .value());
  };
  expect_same_alone_and_in_company(make, weights.config.vocab, {kConfigs[0], kConfigs[2]});
}

}  // namespace
}  // namespace gauntlet::engine::inline serving
