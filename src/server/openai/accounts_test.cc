// Several keys over one server: what is whose, and what each may take.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/steps/fake_executor.h"
#include "engine/tiny_tokenizer.h"
#include "server/openai/api.h"
#include "server/openai/generate/answered.h"

namespace gauntlet::server::inline openai {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class AccountsTest : public ::testing::Test {
 protected:
  AccountsTest() {
    executor_.next = [](const engine::FakeExecutor::History& history) {
      return (history.back() + 1) % 1000;
    };
  }

  HttpRequest request(const std::string& key, const std::string& method, const std::string& target,
                      const std::string& body = "") {
    return {.id = "r" + std::to_string(++num_asked_),
            .method = method,
            .target = target,
            .authorization = "Bearer " + key,
            .body = body};
  }
  std::shared_ptr<Reply> send(const std::string& key, const std::string& method,
                              const std::string& target, const std::string& body = "") {
    return api_.handle(request(key, method, target, body));
  }
  Answered read(Reply& reply) { return read_answer(reply, service_); }
  Answered ask(const std::string& key, const std::string& method, const std::string& target,
               const std::string& body = "") {
    return read(*send(key, method, target, body));
  }

  KeyRing ring_{ApiKeys::parse("alice sk-a 3\nbob sk-b\n", "keys").value()};
  engine::FakeExecutor executor_{tiny_config(), 512};
  engine::Service service_{executor_,
                           {.scheduler = {.max_running = 8, .max_queue = 40}, .shares = 4}};
  ServerMetrics metrics_;
  Api api_{{.model = {.name = "tiny", .vocab = tiny_config().vocab}, .keys = &ring_},
           service_,
           engine::tiny_tokenizer(),
           metrics_};
  int num_asked_ = 0;
};

TEST_F(AccountsTest, are_named_by_their_keys_before_a_body_comes) {
  const auto admitted = [&](const std::string& key) {
    return api_.admit(request(key, "POST", "/v1/completions"));
  };
  EXPECT_EQ(admitted("sk-a").account, "alice");
  EXPECT_EQ(admitted("sk-a").share, 3);
  EXPECT_EQ(admitted("sk-b").account, "bob");
  EXPECT_EQ(admitted("sk-c").refusal->take()->head->status, 401);
  EXPECT_EQ(api_.admit(request("", "GET", "/health")).account, "");
}

TEST_F(AccountsTest, cannot_read_follow_cancel_or_delete_responses_of_others) {
  const std::string input = R"({"input": "hi", "max_output_tokens": 3)";
  const Answered made = ask("sk-a", "POST", "/v1/responses", input + "}");
  ASSERT_EQ(made.status, 200) << made.body;
  const std::string id = made.json()["id"];
  const std::string item = made.json()["output"][0]["id"];
  const std::string at = "/v1/responses/" + id;
  EXPECT_EQ(ask("sk-a", "GET", at).status, 200);
  EXPECT_EQ(ask("sk-b", "GET", at).status, 404);
  EXPECT_EQ(ask("sk-b", "DELETE", at).status, 404);
  const std::string follow = input + fmt::format(R"(, "previous_response_id": "{}"}})", id);
  EXPECT_EQ(ask("sk-b", "POST", "/v1/responses", follow).status, 404);
  EXPECT_EQ(ask("sk-a", "POST", "/v1/responses", follow).status, 200);
  const std::string refer =
      fmt::format(R"({{"input": [{{"type": "item_reference", "id": "{}"}}]}})", item);
  EXPECT_THAT(ask("sk-b", "POST", "/v1/responses", refer).status, testing::Ne(200));
  const auto running = send("sk-a", "POST", "/v1/responses",
                            R"({"input": "hi", "max_output_tokens": 500, "stream": true})");
  std::optional<Piece> piece;
  while (!piece && service_.step()) piece = running->take();
  ASSERT_TRUE(piece);
  const std::string events = piece->body;
  const std::size_t begin = events.find("resp_");
  const std::string running_id = events.substr(begin, events.find('"', begin) - begin);
  EXPECT_EQ(ask("sk-b", "GET", "/v1/responses/" + running_id).status, 404);
  EXPECT_EQ(ask("sk-b", "POST", "/v1/responses/" + running_id + "/cancel").status, 404);
  EXPECT_EQ(ask("sk-a", "POST", "/v1/responses/" + running_id + "/cancel").status, 200);
  running->abandon();
  EXPECT_EQ(ask("sk-a", "DELETE", at).status, 200);
}

TEST_F(AccountsTest, fill_their_part_of_the_queue_and_no_more) {
  const auto choices = [](int count) {
    return fmt::format(R"({{"prompt": [1, 2], "max_tokens": 5, "n": {}}})", count);
  };
  const Answered never = ask("sk-b", "POST", "/v1/completions", choices(11));
  EXPECT_EQ(never.status, 400) << "a quarter of 40 is 10";
  EXPECT_THAT(never.body, HasSubstr("queues at most 10 of this key"));
  const auto waits = send("sk-b", "POST", "/v1/completions", choices(10));
  EXPECT_EQ(ask("sk-b", "POST", "/v1/completions", choices(1)).status, 429);
  const Answered other = ask("sk-a", "POST", "/v1/completions", choices(4));
  EXPECT_EQ(other.status, 200) << other.body;
  EXPECT_EQ(read(*waits).status, 200);
  service_.set_shares(8);
  EXPECT_THAT(ask("sk-b", "POST", "/v1/completions", choices(10)).body,
              HasSubstr("queues at most 5 of this key"))
      << "others came, and its part is smaller now";
}

TEST_F(AccountsTest, share_places_by_their_shares) {
  const std::string body = R"({"prompt": [1, 2], "max_tokens": 900, "n": 10, "stream": true})";
  const auto bob = send("sk-b", "POST", "/v1/completions", body);
  for (int i = 0; i < 3; ++i) service_.step();
  const auto alice = send("sk-a", "POST", "/v1/completions", body);
  for (int i = 0; i < 5; ++i) service_.step();
  // Three times the share: 6 of the 8 places.
  const auto tokens_of = [](const std::shared_ptr<Reply>& reply) {
    std::size_t count = 0;
    while (const auto piece = reply->take()) {
      for (std::size_t at = piece->body.find("data: "); at != std::string::npos;
           at = piece->body.find("data: ", at + 1)) {
        ++count;
      }
    }
    return count;
  };
  tokens_of(alice);
  tokens_of(bob);
  for (int i = 0; i < 10; ++i) service_.step();
  // A token that is a part of a character is no event.
  EXPECT_NEAR(static_cast<double>(tokens_of(alice)), 60, 4);
  EXPECT_NEAR(static_cast<double>(tokens_of(bob)), 20, 2);
  alice->abandon();
  bob->abandon();
  service_.step();
}

TEST_F(AccountsTest, are_counted_by_name_and_never_by_key) {
  ask("sk-a", "POST", "/v1/completions", R"({"prompt": [1, 2], "max_tokens": 5, "n": 2})");
  ask("sk-a", "POST", "/v1/completions", R"({"prompt": )");
  const std::string text = ask("sk-b", "GET", "/metrics").body;
  const std::string labels = R"({model_name="tiny",engine="0",key=)";
  EXPECT_THAT(text, HasSubstr("gauntlet:key_requests_total" + labels + "\"alice\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("gauntlet:key_requests_total" + labels + "\"bob\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gauntlet:key_prompt_tokens_total" + labels + "\"alice\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("gauntlet:key_generation_tokens_total" + labels + "\"alice\"} 10\n"));
  EXPECT_THAT(text, Not(HasSubstr("sk-")));
}

TEST_F(AccountsTest, lose_keys_that_are_taken_back_and_keep_what_they_had) {
  const Answered made =
      ask("sk-a", "POST", "/v1/responses", R"({"input": "hi", "max_output_tokens": 3})");
  const std::string at = "/v1/responses/" + made.json()["id"].get<std::string>();
  ring_.replace(ApiKeys::parse("carol sk-c\nalice sk-a2 3\n", "keys").value());
  EXPECT_EQ(ask("sk-a", "GET", at).status, 401);
  EXPECT_EQ(ask("sk-c", "GET", at).status, 404);
  EXPECT_EQ(ask("sk-a2", "GET", at).status, 200);
}

TEST(ResponseStore, drops_the_oldest_of_whoever_keeps_most) {
  ResponseStore store({.max_responses = 10, .max_bytes = 100'000});
  const auto keep = [&](const std::string& id, std::int32_t account) {
    store.keep(id, {.body = std::string(1000, 'x'), .account = account});
    EXPECT_EQ(store.check_integrity(), "");
  };
  for (int i = 0; i < 2; ++i) keep("few" + std::to_string(i), 1);
  for (int i = 0; i < 50; ++i) keep("many" + std::to_string(i), 2);
  EXPECT_TRUE(store.find("few0") && store.find("few1"));
  EXPECT_FALSE(store.find("many41"));
  EXPECT_TRUE(store.find("many42") && store.find("many49"));
  for (int i = 2; i < 6; ++i) keep("few" + std::to_string(i), 1);
  EXPECT_EQ(store.num_kept(), 10u);
  EXPECT_TRUE(store.find("few5") && store.find("few1") && store.find("many49"));
}

TEST(AccountCounters, count_names_beyond_their_bound_together) {
  AccountCounters counters;
  for (int i = 0; i < 2000; ++i) counters.add("n" + std::to_string(i), {.requests = 1});
  counters.add("n1", {.requests = 1});
  counters.add("", {.requests = 1});
  const auto counts = counters.counts();
  EXPECT_EQ(counts.size(), AccountCounters::kMaxNames + 1);
  EXPECT_EQ(counts.at("other").requests, 1000);
  EXPECT_EQ(counts.at("n1").requests, 2);
}

}  // namespace
}  // namespace gauntlet::server::inline openai
