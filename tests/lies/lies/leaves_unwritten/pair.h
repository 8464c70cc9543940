// Is a side found that leaves part of its output as it was?
#pragma once
#include "tests/lies/params.h"

namespace gauntlet::lies::leaves_unwritten {

using lies::Params;

}  // namespace gauntlet::lies::leaves_unwritten
