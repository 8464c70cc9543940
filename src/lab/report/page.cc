#include "lab/report/page.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "lab/report/assets.h"
#include "lab/report/format.h"

namespace gauntlet::lab::report {
namespace {

using nlohmann::json;

// No request can leave the page, and no inline handler runs: only the scripts below carry the
// nonce.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'nonce-gauntlet'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'";

/// JSON that can stand inside <script>: without '<' there is no end tag and no comment in it.
std::string script_safe(const json& data) {
  std::string out;
  for (const char c : data.dump(-1, ' ', false, json::error_handler_t::replace)) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

std::string script(std::string_view code) {
  check(code.find("</script") == std::string_view::npos, "an embedded script ends itself");
  return "<script nonce=\"gauntlet\">\n" + std::string(code) + "</script>\n";
}

std::string style(std::string_view rules) {
  return "<style>\n" + std::string(rules) + "</style>\n";
}

}  // namespace

std::string render_page(const Page& page) {
  std::string text;
  text += "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  text += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  text += "<meta name=\"color-scheme\" content=\"light dark\">\n";
  text +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"" + std::string(kPolicy) + "\">\n";
  text += "<link rel=\"icon\" href=\"data:,\">\n";
  text += "<title>" + html_text(page.title) + "</title>\n";
  text += style(embedded::uPlot_min_css()) + style(embedded::report_css());
  for (const std::string_view rules : page.styles) text += style(rules);
  text += "</head>\n<body>\n";
  text +=
      "<noscript>This page draws its tables and charts with JavaScript. report.md, beside it, has "
      "the same "
      "figures without.</noscript>\n";
  text += "<script type=\"application/json\" id=\"data\">" + script_safe(page.data) + "</script>\n";
  text += script(embedded::uPlot_iife_min_js());
  text += script(embedded::report_base_js());
  text += script(embedded::report_charts_js());
  for (const std::string_view code : page.scripts) text += script(code);
  text += "</body>\n</html>\n";
  return text;
}

}  // namespace gauntlet::lab::report
