#include "load/http/url.h"

#include <gtest/gtest.h>

namespace gauntlet::load::inline http {
namespace {

TEST(Url, is_read_with_and_without_its_parts) {
  const auto plain = Url::parse("http://127.0.0.1:8000");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->authority(), "127.0.0.1:8000");
  EXPECT_EQ(plain->path, "");
  const auto tls = Url::parse("https://example.org/api/v1/");
  ASSERT_TRUE(tls);
  EXPECT_TRUE(tls->is_tls);
  EXPECT_EQ(tls->port, 443);
  EXPECT_EQ(tls->path, "/api");
  const auto ipv6 = Url::parse("http://[::1]:80/v1");
  ASSERT_TRUE(ipv6);
  EXPECT_EQ(ipv6->host, "::1");
  EXPECT_EQ(ipv6->authority(), "[::1]:80");
  EXPECT_EQ(Url::parse("http://[::1]")->port, 80);
}

TEST(Url, is_refused_where_it_is_none) {
  for (const char* text :
       {"", "127.0.0.1:8000", "ftp://x", "http://", "http://:80", "http://x:0", "http://x:99999",
        "http://x:8a", "http://a b", "http://u@x", "http://x/?q", "http://x\r\nHost: y"}) {
    const auto url = Url::parse(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().kind, ErrorKind::wrong_use);
  }
}

}  // namespace
}  // namespace gauntlet::load::inline http
