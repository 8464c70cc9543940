#include "server/http/access_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gauntlet::server::inline http {
namespace {

using ::testing::Contains;
using ::testing::Pair;

RequestHead asks_for(const std::string& host) {
  RequestHead head;
  head.host = host;
  return head;
}

TEST(AccessRules, answer_for_names_of_the_loopback_alone_when_bound_to_it) {
  for (const char* bound : {"127.0.0.1", "::1", "127.0.0.2"}) {
    const AccessRules rules(bound, {}, {});
    for (const char* host :
         {"localhost", "gauntlet.localhost", "127.0.0.1", "127.0.0.2", "::1", ""}) {
      EXPECT_FALSE(rules.check_host(asks_for(host))) << host;
    }
    for (const char* host : {"evil.example", "localhost.evil.example", "192.168.0.1", "0.0.0.0",
                             "127.0.0.1.evil.example", "xlocalhost"}) {
      const auto error = rules.check_host(asks_for(host));
      ASSERT_TRUE(error) << host;
      EXPECT_EQ(error->status, 421);
    }
  }
}

TEST(AccessRules, answer_for_any_name_beyond_the_loopback_unless_told_which) {
  EXPECT_FALSE(AccessRules("0.0.0.0", {}, {}).check_host(asks_for("any.example")));
  const AccessRules rules("0.0.0.0", {"Chat.Example", "10.0.0.1"}, {});
  EXPECT_FALSE(rules.check_host(asks_for("chat.example")));
  EXPECT_FALSE(rules.check_host(asks_for("10.0.0.1")));
  EXPECT_TRUE(rules.check_host(asks_for("evil.example")));
  EXPECT_FALSE(AccessRules("127.0.0.1", {"*"}, {}).check_host(asks_for("any.example")));
}

TEST(AccessRules, quote_little_of_a_host_that_is_refused) {
  const auto error = AccessRules("::1", {}, {}).check_host(asks_for(std::string(5000, 'x')));
  EXPECT_LT(error->message.size(), 300u);
}

RequestHead preflight(const std::string& origin) {
  RequestHead head;
  head.method = "OPTIONS";
  head.fields = {{"origin", origin}, {"access-control-request-method", "POST"}};
  return head;
}

TEST(AccessRules, let_pages_of_other_origins_read_only_when_told_to) {
  const AccessRules none("127.0.0.1", {}, {});
  EXPECT_EQ(none.answer_preflight(preflight("https://a.example")), nullptr);
  EXPECT_TRUE(none.reply_headers(preflight("https://a.example")).empty());

  const AccessRules some("127.0.0.1", {}, {"https://a.example"});
  const auto allowed = some.answer_preflight(preflight("https://a.example"))->take();
  EXPECT_EQ(allowed->head->status, 204);
  EXPECT_EQ(some.answer_preflight(preflight("https://b.example"))->take()->head->status, 403);
  EXPECT_THAT(some.reply_headers(preflight("https://a.example")),
              Contains(Pair("Access-Control-Allow-Origin", "https://a.example")));
  EXPECT_THAT(some.reply_headers(preflight("https://b.example")),
              testing::ElementsAre(Pair("Vary", "Origin")));
  EXPECT_EQ(some.answer_preflight(RequestHead{.method = "OPTIONS"}), nullptr) << "no preflight";

  const AccessRules any("127.0.0.1", {}, {"*"});
  EXPECT_THAT(any.reply_headers(preflight("https://b.example")),
              Contains(Pair("Access-Control-Allow-Origin", "*")));
}

}  // namespace
}  // namespace gauntlet::server::inline http
