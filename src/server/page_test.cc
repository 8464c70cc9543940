// Is the page whole, and does it forbid what it must?
#include "server/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

namespace gauntlet::server {
namespace {

using ::testing::HasSubstr;

Piece get(std::string_view path) {
  const PageFile* file = find_page_file(path);
  if (!file) throw std::runtime_error("the page has no " + std::string(path));
  return *make_reply(*file)->take();
}

std::string header(const Piece& piece, const std::string& name) {
  for (const auto& [key, value] : piece.head->headers) {
    if (key == name) return value;
  }
  return "";
}

TEST(Page, has_every_file_that_it_names_and_names_no_other_host) {
  const std::string html = get("/").body;
  const std::regex link(R"((?:src|href)="([^"]+)\")");
  int num_files = 0;
  for (auto at = std::sregex_iterator(html.begin(), html.end(), link); at != std::sregex_iterator();
       ++at) {
    const std::string target = (*at)[1];
    if (target.starts_with("data:")) continue;
    EXPECT_FALSE(get("/" + target).body.empty()) << target;
    ++num_files;
  }
  EXPECT_GE(num_files, 8);
  EXPECT_EQ(find_page_file("/chat.html"), nullptr) << "one page, one address";
  EXPECT_EQ(find_page_file("/../chat.js"), nullptr);
}

TEST(Page, forbids_inline_code_and_other_hosts) {
  for (const char* path : {"/", "/chat.js", "/chat.css"}) {
    const Piece piece = get(path);
    EXPECT_EQ(piece.head->status, 200);
    const std::string policy = header(piece, "Content-Security-Policy");
    EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
    EXPECT_THAT(policy, HasSubstr("script-src 'self'"));
    EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
    EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
    EXPECT_EQ(header(piece, "X-Content-Type-Options"), "nosniff");
  }
  EXPECT_THAT(get("/").body, Not(HasSubstr("style=\""))) << "the policy would drop it";
}

TEST(Page, says_what_each_file_is) {
  EXPECT_THAT(get("/").head->content_type, HasSubstr("text/html"));
  EXPECT_THAT(get("/chat.js").head->content_type, HasSubstr("text/javascript"));
  EXPECT_THAT(get("/uPlot.min.css").head->content_type, HasSubstr("text/css"));
}

}  // namespace
}  // namespace gauntlet::server
