#include "server/http/wire/chunked_body.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/property_check.h"

namespace gauntlet::server::inline http {
namespace {

using State = ChunkedBody::State;

/// What the parser makes of a text that comes in pieces of these sizes, and what it leaves.
struct ReadInPieces {
  State state = State::more;
  std::string body;
  std::string rest;
};
ReadInPieces read_in_pieces(const std::string& text, const std::vector<std::uint8_t>& sizes) {
  ChunkedBody chunks({.body_bytes = 100'000, .extra_bytes = 100'000});
  ReadInPieces result;
  std::size_t at = 0;
  for (std::size_t i = 0; result.state == State::more && at < text.size(); ++i) {
    const std::size_t size = sizes.empty() ? 1 : 1 + sizes[i % sizes.size()] % 9;
    const std::string_view part = std::string_view(text).substr(at, size);
    std::string_view rest = part;
    result.state = chunks.read(rest, result.body);
    at += part.size() - rest.size();
  }
  result.rest = text.substr(at);
  return result;
}

TEST(ChunkedBody, is_the_same_however_its_bytes_are_cut) {
  check_property("chunks of any bytes, cut anywhere, are the body",
                 [](const std::vector<std::string>& chunks, bool has_extension, bool has_trailer,
                    const std::vector<std::uint8_t>& sizes) {
                   std::string body, text;
                   for (const std::string& chunk : chunks) {
                     if (chunk.empty()) continue;
                     text += fmt::format("{:x}{}\r\n", chunk.size(), has_extension ? ";a=b" : "");
                     text += chunk + "\r\n";
                     body += chunk;
                   }
                   text += has_trailer ? "00;x\r\nA: b\r\nC:\r\n\r\n" : "0\r\n\r\n";
                   const std::string next = "GET / HTTP/1.1\r\n";
                   const ReadInPieces read = read_in_pieces(text + next, sizes);
                   RC_ASSERT(read.state == State::done);
                   RC_ASSERT(read.body == body);
                   RC_ASSERT(read.rest == next);
                 });
}

TEST(ChunkedBody, is_refused_at_the_same_place_however_its_bytes_are_cut) {
  check_property(
      "any text ends alike whole and in pieces",
      [](const std::vector<std::uint8_t>& picks, const std::vector<std::uint8_t>& sizes) {
        constexpr std::string_view kAlphabet = "0012af;=:A \t\r\r\n\n";
        std::string text;
        for (const std::uint8_t pick : picks) text += kAlphabet[pick % kAlphabet.size()];
        const ReadInPieces whole = read_in_pieces(text, {8});
        const ReadInPieces cut = read_in_pieces(text, sizes);
        RC_ASSERT(whole.state == cut.state);
        RC_ASSERT(whole.body == cut.body);
      });
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
