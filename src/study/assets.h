// Files that a study carries (cmake/Embed.cmake puts them into the binary).
#pragma once
#include <string_view>

namespace gauntlet::embedded {

std::string_view study_css();
std::string_view study_base_js();
std::string_view study_causes_js();
std::string_view study_charts_js();
std::string_view study_js();
std::string_view study_ladder_js();
std::string_view study_serving_js();
std::string_view study_sweeps_js();

}  // namespace gauntlet::embedded
