#include "lab/report/assets.h"
#include "lab/report/page.h"
#include "load/results/result.h"

namespace gauntlet::load::inline results {

std::string render_html(const LoadResult& result) {
  return lab::report::render({.title = "Load: " + result.model,
                              .data = json_text(result),
                              .without_script = "This page draws its charts with JavaScript. The "
                                                "figures are in its data, as JSON.",
                              .scripts = {embedded::load_charts_js(), embedded::load_report_js()}});
}

}  // namespace gauntlet::load::inline results
