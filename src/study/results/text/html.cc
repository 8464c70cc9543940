#include "study/results/text/html.h"

#include <nlohmann/json.hpp>

#include "lab/report/page.h"
#include "study/assets.h"

namespace gauntlet::study::inline results {

std::string render_html(const StudyResults& results) {
  return render(lab::report::Page{
      .title = "Gauntlet study " + results.run.run_id,
      .data = to_json(results).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
      .without_script =
          "This page draws its tables and charts with JavaScript. report.md, beside it, has the "
          "same figures without.",
      .scripts = {embedded::study_charts_js(), embedded::study_base_js(),
                  embedded::study_ladder_js(), embedded::study_causes_js(),
                  embedded::study_sweeps_js(), embedded::study_serving_js(), embedded::study_js()},
      .styles = {embedded::study_css()}});
}

}  // namespace gauntlet::study::inline results
