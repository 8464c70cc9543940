// The report of a run as Markdown: good on a code host, readable as plain text in a terminal.
#pragma once
#include <string>

#include "lab/records/run_record.h"

namespace gauntlet::lab::report {

std::string render_markdown(const RunRecord& record);

}  // namespace gauntlet::lab::report
