// What is around a piece of a reply on the wire?
#include "server/http/wire/chunk_frame.h"

#include <gtest/gtest.h>

#include <string>

namespace gauntlet::server::inline http {
namespace {

std::string framed(std::size_t body_bytes, bool is_last, unsigned version) {
  const Piece piece{.body = std::string(body_bytes, 'x'), .is_last = is_last};
  const ChunkFrame frame(piece, version);
  return std::string(frame.before()) + "|" + std::string(frame.after());
}

TEST(ChunkFrame, says_a_chunks_size_in_hexadecimal_and_ends_the_reply_once) {
  EXPECT_EQ(framed(1, false, 11), "1\r\n|\r\n");
  EXPECT_EQ(framed(255, false, 11), "ff\r\n|\r\n");
  EXPECT_EQ(framed(65536, true, 11), "10000\r\n|\r\n0\r\n\r\n");
}

TEST(ChunkFrame, is_nothing_around_nothing_unless_that_is_the_end) {
  EXPECT_EQ(framed(0, false, 11), "|");
  EXPECT_EQ(framed(0, true, 11), "|0\r\n\r\n");
}

TEST(ChunkFrame, is_nothing_before_http_1_1) {
  EXPECT_EQ(framed(10, false, 10), "|");
  EXPECT_EQ(framed(0, true, 10), "|");
}

}  // namespace
}  // namespace gauntlet::server::inline http
