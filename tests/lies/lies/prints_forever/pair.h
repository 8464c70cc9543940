// Does the run go on, and the disk stay free, after a side that prints without end?
#pragma once
#include "tests/lies/params.h"

namespace gauntlet::lies::prints_forever {

using lies::Params;

}  // namespace gauntlet::lies::prints_forever
