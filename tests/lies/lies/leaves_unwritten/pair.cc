#include "tests/lies/lies/leaves_unwritten/pair.h"

#include "tests/lies/scale_pair.h"

namespace gauntlet::lies::leaves_unwritten {

lab::Pair<Params> pair() { return scale_pair(); }

}  // namespace gauntlet::lies::leaves_unwritten
