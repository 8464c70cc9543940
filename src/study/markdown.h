// A study's results as Markdown: good on a code host, readable as plain text in a terminal.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace gauntlet::study {

std::string render_markdown(const nlohmann::json& results);

}  // namespace gauntlet::study
