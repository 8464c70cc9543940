// A connection is a file.
#pragma once

namespace gauntlet::cli {

/// As many as the system lets this process have.
void raise_file_limit();

}  // namespace gauntlet::cli
