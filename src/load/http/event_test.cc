#include "load/http/event.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "load/workload/variates.h"

namespace gauntlet::load::inline http {
namespace {

using nlohmann::json;

TEST(Event, has_text_where_a_completion_or_a_delta_does) {
  for (const char* data :
       {R"({"choices":[{"index":0,"text":" a"}]})", R"({"choices":[{"text" : "\"" }]})",
        R"({"choices":[{"delta":{"content":"x"}}]})",
        R"({"choices":[{"delta":{"reasoning_content":"x"}}]})",
        R"({"choices":[{"delta":{"content":"","reasoning":"x"}}]})",
        R"({"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{"}}]}}]})"}) {
    EXPECT_TRUE(scan_event(data).has_text) << data;
  }
}

TEST(Event, has_no_text_where_it_is_empty_or_only_looks_like_it) {
  for (const char* data :
       {R"({"choices":[{"index":0,"text":""}]})", R"({"choices":[{"delta":{"content":null}}]})",
        R"({"choices":[{"delta":{"role":"assistant","content":""}}]})",
        R"({"choices":[{"delta":{}}],"logprobs":{"content":[{"token":"a"}]}})",
        R"({"model":"text","choices":[{"text":""}]})", R"({"a":"\"text\":\"x\"","text":""})",
        R"({"choices":[{"text":"","logprobs":{"top_logprobs":[{"text":-0.5}]}}]})", "[DONE]", "",
        "\"", "{\"text\":"}) {
    EXPECT_FALSE(scan_event(data).has_text) << data;
  }
}

TEST(Event, has_usage_that_is_not_null) {
  EXPECT_FALSE(scan_event(R"({"choices":[],"usage":null})").has_usage);
  const std::string data =
      R"({"choices":[],"usage": {"prompt_tokens":5,"completion_tokens":7,"total_tokens":12,)"
      R"("prompt_tokens_details":{"cached_tokens":3}}})";
  EXPECT_TRUE(scan_event(data).has_usage);
  const auto usage = usage_of(data);
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->prompt_tokens, 5);
  EXPECT_EQ(usage->completion_tokens, 7);
  EXPECT_EQ(usage->cached_tokens, 3);
  EXPECT_FALSE(usage_of(R"({"usage":null})"));
  EXPECT_FALSE(usage_of("nonsense"));
}

TEST(Event, is_done_or_an_error) {
  EXPECT_TRUE(scan_event("[DONE]").is_done);
  EXPECT_FALSE(scan_event("\"[DONE]\"").is_done);
  EXPECT_TRUE(scan_event(R"({"error":{"message":"no"}})").has_error);
  EXPECT_FALSE(scan_event(R"({"error":null,"text":"x"})").has_error);
}

TEST(Event, is_scanned_as_a_parser_would_read_it) {
  Variates variates(21, 0);
  const std::string letters = "ab\"\\:{}text usagerrcontent,[]\n";
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::int64_t i = variates.integer(0, 12); i > 0; --i) {
      text += letters[static_cast<std::size_t>(variates.integer(0, std::ssize(letters) - 1))];
    }
    if (variates.unit() < 0.5) text += R"("text":"x","usage":{"error":{)";
    const bool is_chat = variates.unit() < 0.5;
    json choice = {{"index", 0}, {"finish_reason", nullptr}};
    choice[is_chat ? "delta" : "text"] = is_chat ? json{{"content", text}} : json(text);
    const bool has_usage = variates.unit() < 0.3;
    const json event = {{"model", text},
                        {"choices", {choice}},
                        {"usage", has_usage ? json{{"prompt_tokens", 1}} : json()}};
    const EventScan scan = scan_event(event.dump(variates.unit() < 0.5 ? -1 : 2));
    ASSERT_EQ(scan.has_text, !text.empty()) << event;
    ASSERT_EQ(scan.has_usage, has_usage) << event;
    ASSERT_FALSE(scan.has_error) << event;
  }
}

TEST(Event, says_an_errors_words_in_one_line) {
  EXPECT_EQ(error_words(R"({"error":{"message":"too\nlong"}})"), "too long");
  EXPECT_EQ(error_words(R"({"error":"plain"})"), "plain");
  EXPECT_EQ(error_words("<html>"), "<html>");
  EXPECT_LE(error_words(std::string(9999, 'x')).size(), 210u);
}

}  // namespace
}  // namespace gauntlet::load::inline http
