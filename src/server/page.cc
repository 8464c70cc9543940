#include "server/page.h"

#include <algorithm>

namespace gauntlet::embedded {

// cmake/Embed.cmake makes these out of web/.
std::string_view chat_html();
std::string_view chat_css();
std::string_view chat_js();
std::string_view chat_api_js();
std::string_view chat_metrics_js();
std::string_view chat_charts_js();
std::string_view chat_turns_js();
std::string_view chat_store_js();
std::string_view chat_markdown_js();
std::string_view report_base_js();
std::string_view report_css();
std::string_view uPlot_iife_min_js();
std::string_view uPlot_min_css();

}  // namespace gauntlet::embedded

namespace gauntlet::server {
namespace {

constexpr const char* kHtml = "text/html; charset=utf-8";
constexpr const char* kScript = "text/javascript; charset=utf-8";
constexpr const char* kStyle = "text/css; charset=utf-8";

constexpr PageFile kFiles[] = {
    {"/", kHtml, embedded::chat_html},
    {"/chat.js", kScript, embedded::chat_js},
    {"/chat_api.js", kScript, embedded::chat_api_js},
    {"/chat_metrics.js", kScript, embedded::chat_metrics_js},
    {"/chat_charts.js", kScript, embedded::chat_charts_js},
    {"/chat_turns.js", kScript, embedded::chat_turns_js},
    {"/chat_store.js", kScript, embedded::chat_store_js},
    {"/chat_markdown.js", kScript, embedded::chat_markdown_js},
    {"/report_base.js", kScript, embedded::report_base_js},
    {"/uPlot.iife.min.js", kScript, embedded::uPlot_iife_min_js},
    {"/chat.css", kStyle, embedded::chat_css},
    {"/report.css", kStyle, embedded::report_css},
    {"/uPlot.min.css", kStyle, embedded::uPlot_min_css},
};

/// The page's own files run and nothing else does: no inline script or style, no other host, no
/// frame around it.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

}  // namespace

const PageFile* find_page_file(std::string_view path) {
  const auto file = std::ranges::find(kFiles, path, &PageFile::path);
  return file == std::end(kFiles) ? nullptr : &*file;
}

std::shared_ptr<Reply> make_reply(const PageFile& file) {
  HttpHead head{.content_type = file.content_type};
  head.headers = {{"Content-Security-Policy", kPolicy},
                  {"X-Content-Type-Options", "nosniff"},
                  {"Referrer-Policy", "no-referrer"},
                  {"Cache-Control", "no-cache"}};
  return make_reply(std::move(head), std::string(file.content()));
}

}  // namespace gauntlet::server
