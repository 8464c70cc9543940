#include "engine/measure/closed_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "engine/steps/fake_executor.h"

namespace gauntlet::engine::inline measure {
namespace {

using testing::HasSubstr;

model::ModelConfig small_model() {
  model::ModelConfig config;
  config.name = "small";
  config.vocab = 1000;
  config.max_positions = 64;
  config.eos_ids = {7};
  return config;
}

TEST(ClosedLoop, keeps_its_streams_full_until_no_request_is_left) {
  FakeExecutor executor(small_model(), 64);
  executor.next = [](const FakeExecutor::History&) { return 7; };  // an end that is ignored
  const ClosedLoop loop{.streams = 3, .prompt_tokens = 5, .output_tokens = 4, .requests = 6};
  std::vector<std::int64_t> progress;
  const auto rate = run_closed_loop(executor, {.scheduler = {.max_queue = 16}}, loop,
                                    [&](std::int64_t done) { progress.push_back(done); });
  ASSERT_TRUE(rate) << rate.error().message;
  EXPECT_EQ(progress.back(), 9);
  std::size_t most = 0;
  std::set<std::vector<std::int32_t>> prompts;
  for (const FakeExecutor::Step& step : executor.steps) {
    most = std::max(most, step.items.size());
    for (const BatchItem& item : step.items) {
      if (item.tokens.size() == 5) prompts.insert(item.tokens);
    }
  }
  EXPECT_EQ(most, 3);
  EXPECT_EQ(prompts.size(), 9) << "prompts are distinct, and none is skipped";
  EXPECT_EQ(rate->tokens, 24) << "of two waves: the first is not counted";
  EXPECT_GT(rate->tokens_per_s, 0);
}

TEST(ClosedLoop, says_which_request_cannot_be_served) {
  FakeExecutor executor(small_model(), 64);
  const ClosedLoop loop{.streams = 1, .prompt_tokens = 65, .output_tokens = 4, .requests = 2};
  const auto rate = run_closed_loop(executor, {}, loop, nullptr);
  ASSERT_FALSE(rate);
  EXPECT_THAT(rate.error().message, HasSubstr("65"));
}

TEST(ClosedLoop, is_written_as_four_numbers) {
  const auto loop = ClosedLoop::parse("256:1024:512:600");
  ASSERT_TRUE(loop);
  EXPECT_EQ(loop->streams, 256);
  EXPECT_EQ(loop->prompt_tokens, 1024);
  EXPECT_EQ(loop->output_tokens, 512);
  EXPECT_EQ(loop->requests, 600);
  for (const char* wrong :
       {"", "1:2:3", "1:2:3:4:5", "0:1:1:8", "a:1:1:8", "1:1:1:8x", "4:1:1:3"}) {
    EXPECT_FALSE(ClosedLoop::parse(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace gauntlet::engine::inline measure
