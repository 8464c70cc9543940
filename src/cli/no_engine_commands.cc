// A catalogue's binary without the engine: the lab's commands alone.
#include "cli/command.h"

namespace gauntlet::cli {

void add_engine_commands(CLI::App&, Context&) {}

}  // namespace gauntlet::cli
