#include "tests/lies/lies/caches_answer/pair.h"

#include "tests/lies/scale_pair.h"

namespace gauntlet::lies::caches_answer {

lab::Pair<Params> pair() { return scale_pair(); }

}  // namespace gauntlet::lies::caches_answer
