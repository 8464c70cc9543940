#include "server/openai/api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gauntlet::server::inline openai {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ApiKeys read(const std::string& text) {
  auto keys = ApiKeys::parse(text, "keys");
  EXPECT_TRUE(keys) << keys.error().message;
  return std::move(keys.value());
}

TEST(ApiKeys, are_read_a_line_each_with_name_and_share) {
  const ApiKeys keys = read(
      "# who may ask\n\n  alice\tsk-alice-1   2.5 # twice as much, and a half\r\n"
      "bob sk-bob#1\nalice sk-alice-2 2.5");
  ASSERT_EQ(keys.accounts().size(), 2u);
  EXPECT_EQ(keys.find("sk-alice-1")->name, "alice");
  EXPECT_EQ(keys.find("sk-alice-2"), keys.find("sk-alice-1"));
  EXPECT_EQ(keys.find("sk-alice-1")->share, 2.5);
  EXPECT_EQ(keys.find("sk-bob#1")->share, 1);
  EXPECT_EQ(keys.shares(), 3.5);
  for (const char* wrong : {"", "sk-bob", "sk-bob#", "sk-bob#12", "alice", "SK-BOB#1"}) {
    EXPECT_EQ(keys.find(wrong), nullptr) << wrong;
  }
}

TEST(ApiKeys, are_refused_with_file_and_line_and_never_shown) {
  const auto fault = [](const std::string& text) {
    const auto keys = ApiKeys::parse(text, "keys");
    EXPECT_FALSE(keys) << text;
    EXPECT_THAT(keys.error().message, Not(HasSubstr("secret")));
    return keys.error().message;
  };
  EXPECT_THAT(fault(""), HasSubstr("keys has no key"));
  EXPECT_THAT(fault("# secret\n"), HasSubstr("keys has no key"));
  EXPECT_THAT(fault("\nsecret\n"), HasSubstr("keys:2: a line is a name, a key"));
  EXPECT_THAT(fault("a secret 1 more"), HasSubstr("keys:1: a line is"));
  EXPECT_THAT(fault("a/b secret"), HasSubstr("a name has at most"));
  EXPECT_THAT(fault("a secr\xC3\xA9t"), HasSubstr("a key has"));
  for (const char* share : {"0", "-1", "nan", "inf", "1e9", "2x", "secret"}) {
    EXPECT_THAT(fault("a secret " + std::string(share)), HasSubstr("a share is a number"));
  }
  EXPECT_THAT(fault("a secret\nb secret"), HasSubstr("keys:2: this key was given before"));
  EXPECT_THAT(fault("a secret1 2\na secret2"), HasSubstr("'a' has the share 2 on another line"));
  std::string many;
  for (int i = 0; i < 1001; ++i) many += "n" + std::to_string(i) + " k" + std::to_string(i) + "\n";
  EXPECT_THAT(fault(many), HasSubstr("keys:1001: there are more than 1000 names"));
}

TEST(ApiKeys, take_one_more_key_under_the_name_default) {
  ApiKeys keys;
  EXPECT_TRUE(keys.add_default("one"));
  EXPECT_EQ(keys.find("one")->name, "default");
  EXPECT_FALSE(keys.add_default("two"));
  ApiKeys same = read("alice one\n");
  EXPECT_FALSE(same.add_default("one")) << "it is alice's";
}

TEST(KeyRing, keeps_the_ids_of_names_when_its_keys_change) {
  KeyRing ring(read("alice a\nbob b\n"));
  const std::int32_t alice = ring.keys()->find("a")->id;
  const std::int32_t bob = ring.keys()->find("b")->id;
  EXPECT_GT(alice, 0);
  EXPECT_NE(alice, bob);
  const auto before = ring.keys();
  ring.replace(read("carol c\nbob b2\n"));
  EXPECT_EQ(ring.keys()->find("b"), nullptr);
  EXPECT_EQ(ring.keys()->find("b2")->id, bob);
  EXPECT_NE(ring.keys()->find("c")->id, alice);
  EXPECT_EQ(before->find("a")->id, alice) << "who asked before goes on";
}

}  // namespace
}  // namespace gauntlet::server::inline openai
