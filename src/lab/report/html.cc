#include "lab/report/html.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "lab/report/assets.h"
#include "lab/report/format.h"
#include "lab/report/summary.h"

namespace gauntlet::lab {
namespace {

using namespace report;
using nlohmann::json;

// No request can leave the page, and no inline handler runs: only the scripts below carry the
// nonce.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'nonce-gauntlet'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'";

json summary_to_json(const Summary& summary, const MachineInfo& machine) {
  json counts = json::object();
  for (const auto& [status, count] : summary.counts) counts[name_of(status)] = count;
  json headlines = json::array();
  for (const Headline& headline : summary.headlines) {
    headlines.push_back(
        {{"backend", name_of(headline.backend)},
         {"speedup", headline.num_passed > 0 ? json(headline.passed_speedup) : json()},
         {"sentence", headline_sentence(headline)}});
  }
  return {{"counts", std::move(counts)},
          {"headlines", std::move(headlines)},
          {"counts_sentence", counts_sentence(summary)},
          {"left_out_sentence", left_out_sentence(summary)},
          {"machine_line", machine_line(machine)}};
}

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

std::string render_html(const RunRecord& record) {
  const json data = {{"record", to_json(record)},
                     {"summary", summary_to_json(summarize(record), record.machine)}};
  std::string page;
  page += "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += "<meta name=\"color-scheme\" content=\"light dark\">\n";
  page +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"" + std::string(kPolicy) + "\">\n";
  page += "<link rel=\"icon\" href=\"data:,\">\n";
  page += "<title>Gauntlet " + html_text(record.run_id) + "</title>\n";
  page += style(embedded::uPlot_min_css()) + style(embedded::report_css());
  page += "</head>\n<body>\n";
  page +=
      "<noscript>This page draws its tables and charts with JavaScript. report.md, beside it, has "
      "the same "
      "figures without.</noscript>\n";
  page += "<script type=\"application/json\" id=\"data\">" + script_safe(data) + "</script>\n";
  page += script(embedded::uPlot_iife_min_js());
  page += script(embedded::report_base_js());
  page += script(embedded::report_charts_js());
  page += script(embedded::report_table_js());
  page += script(embedded::report_js());
  page += "</body>\n</html>\n";
  return page;
}

}  // namespace gauntlet::lab
