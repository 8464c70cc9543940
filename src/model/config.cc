// Reads a model's shape and refuses one that contradicts itself.
#include "model/config.h"

namespace gauntlet::model {}  // namespace gauntlet::model
