// doctor --ranks: has this machine what a job of several ranks needs, and how fast are its sums?
#pragma once
#include "cli/command.h"

namespace gauntlet::cli {

/// Adds --ranks, --ranks-env and --rounds to the command doctor. Under mpirun its ranks measure.
void add_rank_doctor(CLI::App& app, Context& context);

}  // namespace gauntlet::cli
