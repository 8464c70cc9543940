// The parts of results.json. A cell that could not be measured says why in "gap"; one that was not
// reached is null.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "study/results.h"

namespace gauntlet::study {

nlohmann::json layers_to_json(const StudyFacts& facts, const Journal& journal);
nlohmann::json total_to_json(const Journal& journal);
nlohmann::json leave_one_out_to_json(const StudyFacts& facts, const Journal& journal,
                                     const nlohmann::json& layers);
nlohmann::json sweeps_to_json(const StudyFacts& facts, const Journal& journal);
nlohmann::json router_to_json(const Journal& journal);
nlohmann::json time_to_json(const Journal& journal);

}  // namespace gauntlet::study
