#include "study/html.h"

#include <nlohmann/json.hpp>

#include "lab/report/page.h"
#include "study/assets.h"

namespace gauntlet::study {

std::string render_html(const nlohmann::json& results) {
  return lab::report::render_page(
      {.title = "Gauntlet study " + results.at("study_id").get<std::string>(),
       .data = results,
       .scripts = {embedded::study_charts_js(), embedded::study_js()},
       .styles = {embedded::study_css()}});
}

}  // namespace gauntlet::study
