#include "load/workload/prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace gauntlet::load::inline workload {
namespace {

using nlohmann::json;

std::vector<std::int64_t> ids_of(const PromptSource& source, const PlannedRequest& request) {
  const json body = json::parse(request_body({.model = "m"}, source, request, 1));
  return body["prompt"].get<std::vector<std::int64_t>>();
}

TEST(Prompts, are_token_ids_of_the_exact_length) {
  const auto ids = ids_of({.ids = {5, 7, 9}}, {.prompt_tokens = 300, .seed = 3});
  EXPECT_EQ(ids.size(), 300u);
  EXPECT_THAT(ids, testing::Each(testing::AnyOf(5, 7, 9)));
  EXPECT_THAT(ids_of({.vocab = 10}, {.prompt_tokens = 300, .seed = 3}),
              testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(10))));
}

TEST(Prompts, share_a_prefix_within_a_group_only) {
  const PromptSource source{.vocab = 100000};
  PlannedRequest request{.prompt_tokens = 60, .prefix_tokens = 40, .group = 2, .seed = 3};
  const auto a = ids_of(source, request);
  request.seed = 4;
  const auto b = ids_of(source, request);
  EXPECT_TRUE(std::equal(a.begin(), a.begin() + 40, b.begin()));
  EXPECT_NE(std::vector(a.begin() + 40, a.end()), std::vector(b.begin() + 40, b.end()));
  request.group = 1;
  EXPECT_NE(ids_of(source, request)[0], a[0]);
}

TEST(Prompts, are_as_many_words_as_their_measured_cost_says) {
  const PromptSource source{.words = {.intercept = 20, .per_word = 1.25}};
  const json body = json::parse(request_body({.endpoint = Endpoint::chat, .model = "m"}, source,
                                             {.prompt_tokens = 120, .seed = 3}, 1));
  const std::string text = body["messages"][0]["content"];
  EXPECT_EQ(std::ranges::count(text, ' '), 80);
}

TEST(Prompts, come_with_what_a_stream_needs) {
  const json body =
      json::parse(request_body({.model = "a\"b", .ignore_eos = true, .temperature = 0.5}, {},
                               {.output_tokens = 9, .prompt = "say \"hi\""}, 1));
  EXPECT_EQ(body["model"], "a\"b");
  EXPECT_EQ(body["prompt"], "say \"hi\"");
  EXPECT_EQ(body["max_tokens"], 9);
  EXPECT_EQ(body["stream"], true);
  EXPECT_EQ(body["stream_options"]["include_usage"], true);
  EXPECT_EQ(body["ignore_eos"], true);
  EXPECT_EQ(body["temperature"], 0.5);
  const json bare = json::parse(request_body({.model = "m"}, {}, {.prompt = "a"}, 1));
  EXPECT_FALSE(bare.contains("ignore_eos"));
  EXPECT_FALSE(bare.contains("temperature"));
}

}  // namespace
}  // namespace gauntlet::load::inline workload
