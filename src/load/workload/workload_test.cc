#include "load/workload/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace gauntlet::load::inline workload {
namespace {

TEST(Workload, plans_each_request_by_seed_and_index_alone) {
  const WorkloadSpec spec{.prompt_tokens = *Lengths::parse("uniform:1..1000", ""), .seed = 4};
  const WorkloadSpec other{.prompt_tokens = *Lengths::parse("uniform:1..1000", ""), .seed = 5};
  std::set<std::uint64_t> seeds;
  int same = 0;
  for (std::int64_t i = 99; i >= 0; --i) {
    const PlannedRequest request = plan_request(spec, i);
    EXPECT_EQ(request.prompt_tokens, plan_request(spec, i).prompt_tokens);
    EXPECT_EQ(request.seed, plan_request(spec, i).seed);
    same += request.prompt_tokens == plan_request(other, i).prompt_tokens;
    seeds.insert(request.seed);
  }
  EXPECT_EQ(seeds.size(), 100u);
  EXPECT_LT(same, 10);
}

TEST(Workload, gives_a_share_of_the_prompts_one_of_the_prefixes_and_all_the_same_length) {
  const WorkloadSpec spec{.prompt_tokens = Lengths::fixed(10),
                          .prefix = *SharedPrefix::parse("3:40:80%")};
  int sharing = 0;
  std::set<std::int64_t> groups;
  for (std::int64_t i = 0; i < 2000; ++i) {
    const PlannedRequest request = plan_request(spec, i);
    EXPECT_EQ(request.prompt_tokens, 50);
    sharing += request.prefix_tokens == 40;
    groups.insert(request.group);
  }
  EXPECT_NEAR(sharing, 1600, 5 * 18);
  EXPECT_THAT(groups, testing::ElementsAre(0, 1, 2));
}

TEST(Workload, follows_a_trace) {
  WorkloadSpec spec;
  spec.trace = {{.at_s = 0, .prompt_tokens = 3, .output_tokens = 4},
                {.at_s = 1, .prompt = "hi", .output_tokens = 5}};
  EXPECT_EQ(plan_request(spec, 0).prompt_tokens, 3);
  EXPECT_EQ(plan_request(spec, 1).prompt, "hi");
  EXPECT_EQ(plan_request(spec, 2).output_tokens, 4);
}

TEST(SharedPrefix, refuses_what_makes_no_sense) {
  EXPECT_DOUBLE_EQ(SharedPrefix::parse("4:256:0.5")->share, 0.5);
  for (const char* text : {"", "4", "0:5", "4:0", "4:5:x", "4:5:120%", "4:5:-1", "a:5"}) {
    EXPECT_FALSE(SharedPrefix::parse(text)) << text;
  }
}

TEST(Trace, reads_lines_with_lengths_or_prompts) {
  const auto trace = parse_trace(
      "{\"at_s\":0,\"prompt_tokens\":5,\"output_tokens\":2}\n\n"
      "{\"at_s\":0.5,\"prompt\":\"hi\",\"output_tokens\":3}",
      "t.jsonl");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->size(), 2u);
  EXPECT_EQ((*trace)[0].prompt_tokens, 5);
  EXPECT_EQ((*trace)[1].prompt, "hi");
  EXPECT_EQ((*trace)[1].at_s, 0.5);
}

TEST(Trace, says_which_line_is_wrong) {
  const std::string good = R"({"at_s":1,"prompt_tokens":5,"output_tokens":2})";
  for (const char* bad :
       {"nonsense", "[]", R"({"prompt_tokens":5,"output_tokens":2})",
        R"({"at_s":0.5,"prompt_tokens":5,"output_tokens":2})",
        R"({"at_s":2,"prompt_tokens":0,"output_tokens":2})", R"({"at_s":2,"prompt_tokens":5})",
        R"({"at_s":2,"prompt":"a","prompt_tokens":5,"output_tokens":2})",
        R"({"at_s":2,"prompt":"","output_tokens":2})",
        R"({"at_s":1e9,"prompt":"a","output_tokens":2})",
        R"({"at_s":2,"prompt":7,"output_tokens":2})"}) {
    const auto trace = parse_trace(good + "\n" + bad, "t.jsonl");
    ASSERT_FALSE(trace) << bad;
    EXPECT_THAT(trace.error().message, testing::StartsWith("t.jsonl line 2 ")) << bad;
    EXPECT_EQ(trace.error().kind, ErrorKind::wrong_use);
  }
  EXPECT_FALSE(parse_trace("\n", "t.jsonl"));
}

}  // namespace
}  // namespace gauntlet::load::inline workload
