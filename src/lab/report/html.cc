#include "lab/report/html.h"

#include <nlohmann/json.hpp>

#include "lab/report/assets.h"
#include "lab/report/page.h"
#include "lab/report/summary.h"

namespace gauntlet::lab::report {
namespace {

using nlohmann::json;

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

}  // namespace

std::string render_html(const RunRecord& record) {
  json open = json::array();
  for (const Result& result : record.results) open.push_back(unwitnessed(result));
  const json data = {{"record", to_json(record)},
                     {"summary", summary_to_json(summarize(record), record.machine)},
                     {"unwitnessed", std::move(open)}};
  return render(Page{.title = "Gauntlet " + record.run_id,
                     .data = data.dump(-1, ' ', false, json::error_handler_t::replace),
                     .without_script =
                         "This page draws its tables and charts with JavaScript. report.md, beside "
                         "it, has the same figures without.",
                     .scripts = {embedded::report_ladder_js(), embedded::report_table_js(),
                                 embedded::report_js()}});
}

}  // namespace gauntlet::lab::report
