// A whole test against a scripted server: what it asks beforehand, and what it reports.
#include "load/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/text/text.h"
#include "load/http/null_server.h"
#include "load/results/compare.h"

namespace gauntlet::load {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

/// A server with or without a tokenizer, whose words cost two tokens and whose chats twelve more.
struct FakeServer {
  bool has_tokenizer = true;
  bool has_models = true;
  std::vector<std::string> streams;

  NullAnswer answer(const NullRequest& request) {
    if (request.target == "/v1/models") {
      return has_models ? NullAnswer{.body = R"({"data":[{"id":"small"},{"id":"large"}]})"}
                        : NullAnswer{.status = 404, .body = "nothing"};
    }
    const json body = json::parse(request.body);
    if (request.target == "/tokenize") {
      if (!has_tokenizer) return {.status = 404, .body = "nothing"};
      json ids = json::array();
      for (int i = 0; i < 60; ++i) ids.push_back(100 + i % 30);
      return {.body = json{{"tokens", ids}}.dump()};
    }
    if (!body.value("stream", false)) {
      const bool is_chat = body.contains("messages");
      const std::string text = is_chat ? body["messages"][0]["content"] : body["prompt"];
      const std::int64_t tokens = 2 * std::ssize(split_words(text)) + (is_chat ? 12 : 0);
      return {.body =
                  json{{"usage", {{"prompt_tokens", tokens}, {"completion_tokens", 1}}}}.dump()};
    }
    streams.push_back(request.body);
    return {.num_tokens = body["max_tokens"]};
  }
};

/// Against the server, which has ended when this returns.
Expected<LoadResult> run(FakeServer& fake, PrepareOptions prepare = {},
                         std::optional<SweepSpec> sweep = std::nullopt) {
  const NullServer server([&](const NullRequest& request) { return fake.answer(request); });
  return run_session(
      {.client = {.url = *Url::parse(server.url()), .timeout_s = 60},
       .prepare = std::move(prepare),
       .arrivals = {.kind = ArrivalKind::closed, .concurrency = 2},
       .workload = {.prompt_tokens = Lengths::fixed(40), .output_tokens = Lengths::fixed(4)},
       .slo = {.ttft_s = 30},
       .sweep = sweep,
       .num_requests = 12});
}

TEST(Session, takes_ids_that_the_servers_tokenizer_knows) {
  FakeServer fake;
  const auto result = run(fake);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->model, "small");
  const PointResult& point = result->points.at(0);
  EXPECT_EQ(point.num_ok, 12);
  EXPECT_EQ(point.output_tokens, 48);
  EXPECT_DOUBLE_EQ(point.good_share.value, 1);
  const json body = json::parse(fake.streams.at(0));
  EXPECT_EQ(body["prompt"].size(), 40u);
  for (const json& id : body["prompt"]) {
    EXPECT_GE(id, 100);
    EXPECT_LT(id, 130);
  }
}

TEST(Session, measures_words_where_there_is_no_tokenizer) {
  FakeServer fake{.has_tokenizer = false};
  ASSERT_TRUE(run(fake));
  const std::string text = json::parse(fake.streams.at(0))["prompt"];
  EXPECT_EQ(split_words(text).size(), 20u);
}

TEST(Session, takes_off_what_a_chat_adds) {
  FakeServer fake;
  ASSERT_TRUE(run(fake, {.endpoint = Endpoint::chat}));
  const std::string text = json::parse(fake.streams.at(0))["messages"][0]["content"];
  EXPECT_EQ(split_words(text).size(), 14u);  // 2 * 14 + 12
}

TEST(Session, asks_nobody_where_model_and_vocabulary_are_given) {
  FakeServer fake{.has_tokenizer = false, .has_models = false};
  const auto nameless = run(fake);
  ASSERT_FALSE(nameless);
  EXPECT_THAT(nameless.error().message, HasSubstr("--model"));
  const auto result = run(fake, {.model = "x", .vocab = 50});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->model, "x");
}

TEST(Session, sweeps_and_its_result_is_read_back_and_compared) {
  FakeServer fake;
  const auto result = run(fake, {}, SweepSpec{.key = SweepKey::concurrency, .from = 1, .to = 2});
  ASSERT_TRUE(result);
  ASSERT_GE(result->points.size(), 2u);
  const auto read = load_result_from_json(json_text(*result), "x.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->loads, result->loads);
  EXPECT_EQ(read->best, result->best);
  EXPECT_EQ(read->slo.ttft_s, 30);
  const auto rows = compare(*read, *read);
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows[0].figure, "goodput /s");
  for (const Comparison& row : rows) {
    EXPECT_DOUBLE_EQ(row.ratio.value, row.a.value > 0 ? 1 : 0) << row.figure;
  }
}

TEST(Result, is_refused_where_it_is_none) {
  for (const char* text : {"", "[]", "{}", R"({"kind":"gauntlet-load","points":[]})",
                           R"({"kind":"gauntlet-load","schema_version":9,"points":[{}]})",
                           R"({"kind":"gauntlet-load","schema_version":1,"points":[{}],)"
                           R"("sweep":{"loads":[1,2],"best":0}})",
                           R"({"kind":"gauntlet-load","schema_version":1,)"
                           R"("points":[{"ttft_s":{"mean":{"value":"soon"}}}]})"}) {
    const auto result = load_result_from_json(text, "x.json");
    ASSERT_FALSE(result) << text;
    EXPECT_THAT(result.error().message, HasSubstr("x.json"));
  }
}

TEST(Result, keeps_hostile_words_out_of_the_pages_markup) {
  LoadResult result{.model = "</script><script>alert(1)</script>"};
  PointResult& point = result.points.emplace_back();
  point.errors["http 500"] = {.count = 1, .example = "<img src=x onerror=alert(1)>\xff"};
  const std::string page = render_html(result);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("\\u003cimg"));
}

}  // namespace
}  // namespace gauntlet::load
