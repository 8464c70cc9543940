// A self-contained HTML page around JSON data and the scripts that draw it: what all reports share.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace gauntlet::lab::report {

struct Page {
  std::string title;
  const nlohmann::json& data;                 // read by the scripts from the element "data"
  std::vector<std::string_view> scripts;      // run after uPlot, the base and the charts
  std::vector<std::string_view> styles = {};  // after the report's own
};
std::string render_page(const Page& page);

}  // namespace gauntlet::lab::report
