// The files of web/ that HTML pages carry (cmake/Embed.cmake puts them into the binary).
#pragma once
#include <string_view>

namespace gauntlet::embedded {

std::string_view report_css();
std::string_view report_base_js();
std::string_view report_charts_js();
std::string_view report_table_js();
std::string_view report_page_js();
std::string_view report_ladder_js();
std::string_view report_js();
std::string_view load_charts_js();
std::string_view load_report_js();
std::string_view uPlot_min_css();
std::string_view uPlot_iife_min_js();

}  // namespace gauntlet::embedded
