// Is a side found that writes past the end of its output?
#pragma once
#include "tests/lies/params.h"

namespace gauntlet::lies::writes_past_output {

using lies::Params;

}  // namespace gauntlet::lies::writes_past_output
