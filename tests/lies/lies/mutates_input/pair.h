// Is a side found that changes its input?
#pragma once
#include "tests/lies/params.h"

namespace gauntlet::lies::mutates_input {

using lies::Params;

}  // namespace gauntlet::lies::mutates_input
