#include "tests/lies/lies/honest/pair.h"

#include "tests/lies/scale_pair.h"

namespace gauntlet::lies::honest {

lab::Pair<Params> pair() { return scale_pair(); }

}  // namespace gauntlet::lies::honest
