// A page that needs nothing beside it and nothing from the network: its data as JSON, its scripts
// and style inside.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace gauntlet::lab::report {

struct Page {
  std::string title;
  std::string data;  // JSON, which the scripts find in #data
  std::string without_script;
  std::vector<std::string_view> scripts;      // after those that every page has
  std::vector<std::string_view> styles = {};  // likewise
};

std::string render(const Page& page);

}  // namespace gauntlet::lab::report
