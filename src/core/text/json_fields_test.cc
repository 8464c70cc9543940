#include "core/text/json_fields.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace gauntlet {
namespace {

const nlohmann::json kFields = {{"text", "a"},    {"texts", {"a", "b"}}, {"whole", 1LL << 40},
                                {"small", 7},     {"yes", true},         {"number", 2.5},
                                {"nil", nullptr}, {"object", {{"a", 1}}}};

TEST(JsonFields, reads_what_is_there) {
  EXPECT_EQ(string_at(kFields, "text"), "a");
  EXPECT_EQ(strings_at(kFields, "texts"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(integer_at(kFields, "whole"), 1LL << 40);
  EXPECT_EQ(small_at(kFields, "small"), 7);
  EXPECT_TRUE(flag_at(kFields, "yes"));
  EXPECT_EQ(number_at(kFields, "number"), 2.5);
  EXPECT_EQ(object_at(kFields, "object").at("a"), 1);
}

TEST(JsonFields, takes_the_default_for_what_is_missing_or_null) {
  for (const char* key : {"absent", "nil"}) {
    EXPECT_EQ(string_at(kFields, key), "");
    EXPECT_TRUE(strings_at(kFields, key).empty());
    EXPECT_EQ(integer_at(kFields, key, 3), 3);
    EXPECT_EQ(small_at(kFields, key, 4), 4);
    EXPECT_FALSE(flag_at(kFields, key));
    EXPECT_TRUE(object_at(kFields, key).empty());
  }
  EXPECT_EQ(number_at(kFields, "absent", 5), 5);
}

TEST(JsonFields, reads_null_as_a_number_that_is_not_finite) {
  EXPECT_TRUE(std::isnan(number_at(kFields, "nil", 5)));
}

TEST(JsonFields, throws_for_another_type) {
  EXPECT_ANY_THROW(string_at(kFields, "whole"));
  EXPECT_ANY_THROW(strings_at(kFields, "text"));
  EXPECT_ANY_THROW(integer_at(kFields, "text"));
  EXPECT_ANY_THROW(flag_at(kFields, "text"));
  EXPECT_ANY_THROW(number_at(kFields, "text"));
  EXPECT_ANY_THROW(object_at(kFields, "text"));
}

}  // namespace
}  // namespace gauntlet
