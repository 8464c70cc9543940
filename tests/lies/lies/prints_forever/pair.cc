#include "tests/lies/lies/prints_forever/pair.h"

#include "tests/lies/scale_pair.h"

namespace gauntlet::lies::prints_forever {

lab::Pair<Params> pair() { return scale_pair(); }

}  // namespace gauntlet::lies::prints_forever
