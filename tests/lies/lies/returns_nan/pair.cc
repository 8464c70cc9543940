#include "tests/lies/lies/returns_nan/pair.h"

#include "tests/lies/scale_pair.h"

namespace gauntlet::lies::returns_nan {

lab::Pair<Params> pair() { return scale_pair(); }

}  // namespace gauntlet::lies::returns_nan
