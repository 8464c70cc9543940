// Is work found that escapes the timing on a stream of its own?
#pragma once
#include "tests/lies/params.h"

namespace gauntlet::lies::other_stream {

using lies::Params;

}  // namespace gauntlet::lies::other_stream
