#include "server/http/chunked_body.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/random.h"

namespace gauntlet::server::inline http {
namespace {

using State = ChunkedBody::State;

TEST(ChunkedBody, is_the_same_however_its_bytes_are_cut) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    std::string body, text;
    for (std::uint64_t i = random.next_below(5); i > 0; --i) {
      std::string chunk(1 + random.next_below(40), 'a');
      for (char& c : chunk) c = static_cast<char>(random.next_below(256));
      text += fmt::format("{:x}{}\r\n", chunk.size(), random.next_below(2) ? ";a=b" : "");
      text += chunk + "\r\n";
      body += chunk;
    }
    text += random.next_below(2) ? "0\r\n\r\n" : "00;x\r\nA: b\r\nC:\r\n\r\n";
    const std::string next = "GET / HTTP/1.1\r\n";
    const std::string all = text + next;
    ChunkedBody chunks({.body_bytes = 1000, .extra_bytes = 100});
    std::string read;
    State state = State::more;
    std::size_t at = 0;
    while (state == State::more) {
      ASSERT_LT(at, all.size());
      const std::string_view part = std::string_view(all).substr(at, 1 + random.next_below(9));
      std::string_view rest = part;
      state = chunks.read(rest, read);
      at += part.size() - rest.size();
    }
    EXPECT_EQ(state, State::done);
    EXPECT_EQ(read, body);
    EXPECT_EQ(all.substr(at), next);
  }
}

State state_of(std::string_view text, ChunkedBody::Limits limits) {
  std::string body;
  return ChunkedBody(limits).read(text, body);
}

TEST(ChunkedBody, stays_within_its_limits) {
  const ChunkedBody::Limits limits{.body_bytes = 10, .extra_bytes = 20};
  EXPECT_EQ(state_of("a\r\n0123456789\r\n0\r\n\r\n", limits), State::done);
  EXPECT_EQ(state_of("b\r\n", limits), State::body_too_large);
  EXPECT_EQ(state_of("6\r\n012345\r\n5\r\n", limits), State::body_too_large);
  EXPECT_EQ(state_of("1;" + std::string(50, 'a'), limits), State::extra_too_large);
  EXPECT_EQ(state_of("0\r\nA: " + std::string(50, 'a'), limits), State::extra_too_large);
  EXPECT_EQ(state_of("fffffffffffffffff\r\n", limits), State::malformed);
  std::string many;
  for (int i = 0; i < 10; ++i) many += "1;aaaaaaaaaaaaaaaaaaaaaa\r\na\r\n";
  EXPECT_EQ(state_of(many, limits), State::extra_too_large) << "of all chunks together";
}

}  // namespace
}  // namespace gauntlet::server::inline http
