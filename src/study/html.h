// A study's results as one HTML file that needs nothing beside it and nothing from the network.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace gauntlet::study {

std::string render_html(const nlohmann::json& results);

}  // namespace gauntlet::study
