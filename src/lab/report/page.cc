#include "lab/report/page.h"

#include "core/check.h"
#include "lab/report/assets.h"
#include "lab/report/format.h"

namespace gauntlet::lab::report {
namespace {

// No request can leave the page, and no inline handler runs: only the scripts below carry the
// nonce.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'nonce-gauntlet'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'";

/// JSON that can stand inside <script>: without '<' there is no end tag and no comment in it.
std::string script_safe(std::string_view data) {
  std::string out;
  for (const char c : data) {
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

std::string render(const Page& page) {
  std::string out;
  out += "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  out += "<meta name=\"color-scheme\" content=\"light dark\">\n";
  out += "<meta http-equiv=\"Content-Security-Policy\" content=\"" + std::string(kPolicy) + "\">\n";
  out += "<link rel=\"icon\" href=\"data:,\">\n";
  out += "<title>" + html_text(page.title) + "</title>\n";
  out += style(embedded::uPlot_min_css()) + style(embedded::report_css());
  for (const std::string_view rules : page.styles) out += style(rules);
  out += "</head>\n<body>\n<noscript>" + html_text(page.without_script) + "</noscript>\n";
  out += "<script type=\"application/json\" id=\"data\">" + script_safe(page.data) + "</script>\n";
  out += script(embedded::uPlot_iife_min_js());
  out += script(embedded::report_base_js());
  out += script(embedded::report_charts_js());
  out += script(embedded::report_page_js());
  for (const std::string_view code : page.scripts) out += script(code);
  return out + "</body>\n</html>\n";
}

}  // namespace gauntlet::lab::report
