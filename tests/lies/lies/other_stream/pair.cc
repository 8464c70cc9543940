#include "tests/lies/lies/other_stream/pair.h"

#include "tests/lies/scale_pair.h"

namespace gauntlet::lies::other_stream {

lab::Pair<Params> pair() { return scale_pair(); }

}  // namespace gauntlet::lies::other_stream
