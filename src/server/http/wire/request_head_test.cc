#include "server/http/wire/request_head.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/property_check.h"

namespace gauntlet::server::inline http {
namespace {

RequestHead parsed(const std::string& line, const std::string& fields = "Host: localhost\r\n") {
  auto head = parse_request_head(line + "\r\n" + fields + "\r\n");
  EXPECT_TRUE(head) << line;
  return head ? *head : RequestHead{};
}

TEST(RequestHead, reads_fields_by_any_spelling_of_their_names) {
  const RequestHead head =
      parsed("POST /a?b=c HTTP/1.1",
             "HOST: LocalHost:8000\r\ncontent-LENGTH: 12 \r\nX:\r\nY: \t a  b\t\r\n");
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/a?b=c");
  EXPECT_EQ(head.host, "localhost");
  EXPECT_EQ(head.content_length, 12u);
  EXPECT_EQ(head.field("x"), "");
  EXPECT_EQ(head.field("y"), "a  b");
  EXPECT_TRUE(head.keep_alive);
}

TEST(RequestHead, takes_whole_addresses_as_targets) {
  EXPECT_EQ(parsed("GET http://Example:80/a?b HTTP/1.1").target, "/a?b");
  EXPECT_EQ(parsed("GET http://Example:80/a?b HTTP/1.1").host, "example") << "before the field's";
  EXPECT_EQ(parsed("GET HTTPS://localhost HTTP/1.1").target, "/");
  EXPECT_EQ(parsed("GET http://localhost?a HTTP/1.1").target, "/?a");
  EXPECT_FALSE(parse_request_head("GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_EQ(parsed("OPTIONS * HTTP/1.1").target, "*");
}

TEST(RequestHead, knows_which_connections_go_on) {
  EXPECT_FALSE(parsed("GET / HTTP/1.1", "Host: x\r\nConnection: a, Close\r\n").keep_alive);
  EXPECT_FALSE(parsed("GET / HTTP/1.0", "").keep_alive);
  EXPECT_TRUE(parsed("GET / HTTP/1.0", "Connection: Keep-Alive\r\n").keep_alive);
  EXPECT_EQ(parsed("GET / HTTP/1.0", "").host, "");
}

TEST(RequestHead, tells_other_versions_and_expectations_apart) {
  const auto status = [](const std::string& text) {
    return parse_request_head(text).error().status;
  };
  EXPECT_EQ(status("GET / HTTP/2.0\r\nHost: x\r\n\r\n"), 505);
  EXPECT_EQ(status("GET / HTTP/1.2\r\nHost: x\r\n\r\n"), 505);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: x\r\nExpect: a miracle\r\n\r\n"), 417);
  EXPECT_TRUE(parsed("POST / HTTP/1.1", "Host: x\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n")
                  .expects_continue);
  EXPECT_FALSE(parsed("POST / HTTP/1.1", "Host: x\r\nExpect: 100-continue\r\n").expects_continue)
      << "nothing is to come";
}

TEST(HostOf, takes_names_and_addresses_with_or_without_a_port) {
  EXPECT_EQ(host_of("LOCALHOST:1"), "localhost");
  EXPECT_EQ(host_of("localhost."), "localhost");
  EXPECT_EQ(host_of("[::1]:8000"), "::1");
  EXPECT_EQ(host_of("127.0.0.1"), "127.0.0.1");
  for (const char* wrong : {"", ":80", "a:b", "a:1234567", "[::1", "[::1]x", "a b", "a,b", "a/b",
                            "u@a", "[g]", "a:80:80"}) {
    EXPECT_EQ(host_of(wrong), std::nullopt) << wrong;
  }
}

TEST(PathOf, undoes_escapes_before_the_query) {
  EXPECT_EQ(path_of("/v1/models/openai%2Fgpt-oss-20b?a=%zz"), "/v1/models/openai/gpt-oss-20b");
  EXPECT_EQ(path_of("/%41%7e#x"), "/A~");
  for (const char* wrong : {"/%", "/%4", "/%4g", "/a%zz"}) EXPECT_EQ(path_of(wrong), std::nullopt);
}

TEST(PathOf, gives_back_any_bytes_that_were_escaped) {
  check_property("escaping and path_of undo each other", [](const std::string& path, bool query) {
    std::string target = "/";
    for (const char c : path) target += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    RC_ASSERT(path_of(target + (query ? "?a=%zz" : "")) == "/" + path);
  });
}

TEST(RequestHead, takes_no_field_that_it_does_not_give_back) {
  check_property("any line is refused or is one field", [](const std::string& line) {
    const auto head =
        parse_request_head("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n" + line + "\r\n\r\n");
    if (!head) return;
    std::size_t num_lines = 0;
    for (std::size_t at = 0; (at = line.find("\r\n", at)) != line.npos; ++at) ++num_lines;
    RC_ASSERT(head->fields.size() <= 3 + num_lines);
    for (const auto& [name, value] : head->fields) {
      RC_ASSERT(!name.empty());
      RC_ASSERT(is_field_text(value));
    }
  });
}

}  // namespace
}  // namespace gauntlet::server::inline http
