#include "tests/lies/lies/wrong_result/pair.h"

#include "tests/lies/scale_pair.h"

namespace gauntlet::lies::wrong_result {

lab::Pair<Params> pair() { return scale_pair(); }

}  // namespace gauntlet::lies::wrong_result
