// The report of a run as one HTML file that needs nothing beside it and nothing from the network.
#pragma once
#include <string>

#include "lab/records/run_record.h"

namespace gauntlet::lab::report {

std::string render_html(const RunRecord& record);

}  // namespace gauntlet::lab::report
