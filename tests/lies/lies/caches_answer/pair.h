// Is a side found that keeps its answer and gives it again for the same buffers?
#pragma once
#include "tests/lies/params.h"

namespace gauntlet::lies::caches_answer {

using lies::Params;

}  // namespace gauntlet::lies::caches_answer
