// Is a side found that is faster, but not by the technique it claims?
#pragma once
#include "tests/lies/params.h"

namespace gauntlet::lies::witness_still {

using lies::Params;

}  // namespace gauntlet::lies::witness_still
