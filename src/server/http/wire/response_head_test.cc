#include "server/http/wire/response_head.h"

#include <gtest/gtest.h>

namespace gauntlet::server::inline http {
namespace {

TEST(ResponseHead, states_length_and_headers_of_a_whole_body) {
  const HttpHead head{.status = 401, .headers = {{"WWW-Authenticate", "Bearer"}}};
  EXPECT_EQ(response_head(head, "r1", {.body_bytes = 12}),
            "HTTP/1.1 401 Unauthorized\r\n"
            "Server: gauntlet\r\n"
            "Content-Type: application/json\r\n"
            "x-request-id: r1\r\n"
            "WWW-Authenticate: Bearer\r\n"
            "Content-Length: 12\r\n"
            "\r\n");
}

TEST(ResponseHead, says_only_what_is_not_the_default_of_the_version) {
  const auto says = [](const ResponseForm& form, const char* line) {
    return response_head({}, "r", form).find(line) != std::string::npos;
  };
  EXPECT_FALSE(says({.version = 11, .keep_alive = true}, "Connection"));
  EXPECT_TRUE(says({.version = 11, .keep_alive = false}, "\r\nConnection: close\r\n"));
  EXPECT_TRUE(says({.version = 10, .keep_alive = true}, "\r\nConnection: keep-alive\r\n"));
  EXPECT_FALSE(says({.version = 10, .keep_alive = false}, "Connection"));
}

TEST(ResponseHead, chunks_a_body_of_unknown_length_where_the_version_can) {
  EXPECT_NE(response_head({}, "r", {.version = 11}).find("\r\nTransfer-Encoding: chunked\r\n\r\n"),
            std::string::npos);
  const std::string old = response_head({}, "r", {.version = 10});
  EXPECT_TRUE(old.starts_with("HTTP/1.0 200 OK\r\n"));
  EXPECT_EQ(old.find("chunked"), std::string::npos);
  EXPECT_EQ(old.find("Content-Length"), std::string::npos);
}

}  // namespace
}  // namespace gauntlet::server::inline http
