// Is a side found that is right for the first inputs it sees and for no others?
#pragma once
#include "tests/lies/params.h"

namespace gauntlet::lies::right_only_first {

using lies::Params;

}  // namespace gauntlet::lies::right_only_first
