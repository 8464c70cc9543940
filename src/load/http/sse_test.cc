#include "load/http/sse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "load/workload/variates.h"

namespace gauntlet::load::inline http {
namespace {

using testing::ElementsAre;
using Events = std::vector<std::string>;

Events whole(std::string_view text) {
  Events events;
  SseParser parser([&](std::string_view data) { events.emplace_back(data); });
  EXPECT_TRUE(parser.feed(text));
  return events;
}

Events in_pieces(std::string_view text, Variates& variates) {
  Events events;
  SseParser parser([&](std::string_view data) { events.emplace_back(data); });
  while (!text.empty()) {
    const auto size = std::min<std::size_t>(text.size(), variates.integer(0, 5));
    EXPECT_TRUE(parser.feed(std::string(text.substr(0, size))));
    text.remove_prefix(size);
  }
  return events;
}

TEST(Sse, gives_the_data_of_each_event) {
  EXPECT_THAT(whole("data: a\n\ndata:b\n\ndata: [DONE]\n\n"), ElementsAre("a", "b", "[DONE]"));
}

TEST(Sse, joins_lines_of_data_and_keeps_all_but_one_space) {
  EXPECT_THAT(whole("data:  a\ndata: b\ndata\n\n"), ElementsAre(" a\nb\n"));
}

TEST(Sse, knows_all_three_line_ends) {
  EXPECT_THAT(whole("data: a\r\n\r\ndata: b\r\rdata: c\n\n"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(whole("data: a\r\ndata: b\r\n\r\n"), ElementsAre("a\nb"));
}

TEST(Sse, skips_comments_other_fields_and_events_without_data) {
  EXPECT_THAT(whole(": ping\n\nevent: x\nid: 7\nretry: 1\n\ndatabase: no\n\ndata: a\nevent: y\n\n"),
              ElementsAre("a"));
}

TEST(Sse, says_nothing_of_an_event_that_has_not_ended) {
  EXPECT_THAT(whole("data: a\n\ndata: b\n"), ElementsAre("a"));
}

TEST(Sse, drops_a_byte_order_mark) {
  EXPECT_THAT(whole("\xEF\xBB\xBF"
                    "data: a\n\n"),
              ElementsAre("a"));
}

TEST(Sse, does_not_mind_where_the_pieces_are_cut) {
  Variates variates(11, 0);
  const std::vector<std::string> ends = {"\n", "\r\n", "\r"};
  for (int round = 0; round < 300; ++round) {
    const std::string& end = ends[variates.integer(0, 2)];
    std::string text;
    Events expected;
    for (std::int64_t event = variates.integer(1, 6); event > 0; --event) {
      if (variates.unit() < 0.3) text += ": comment" + end;
      std::string data;
      for (std::int64_t line = variates.integer(1, 3); line > 0; --line) {
        std::string content;
        for (std::int64_t i = variates.integer(0, 9); i > 0; --i)
          content += "ab: d{}\""[variates.integer(0, 7)];
        if (content.starts_with(' ')) content = "x" + content;
        text += "data: " + content + end;
        data += content + (line > 1 ? "\n" : "");
      }
      text += end;
      expected.push_back(data);
    }
    ASSERT_EQ(whole(text), expected) << text;
    ASSERT_EQ(in_pieces(text, variates), expected) << text;
  }
}

TEST(Sse, gives_up_on_an_event_without_end) {
  SseParser parser([](std::string_view) { FAIL(); });
  const std::string piece(1 << 16, 'x');
  bool goes_on = parser.feed("data: ");
  for (int i = 0; i < 20 && goes_on; ++i) goes_on = parser.feed(piece);
  EXPECT_FALSE(goes_on);
}

}  // namespace
}  // namespace gauntlet::load::inline http
