#include "tests/lies/lies/right_only_first/pair.h"

#include "tests/lies/scale_pair.h"

namespace gauntlet::lies::right_only_first {

lab::Pair<Params> pair() { return scale_pair(); }

}  // namespace gauntlet::lies::right_only_first
