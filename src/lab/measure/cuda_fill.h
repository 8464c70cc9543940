// Inputs made on the GPU, with the bits that the host makes of the same seed.
#pragma once
#include "lab/measure/backend.h"

struct CUstream_st;

namespace gauntlet::lab::inline measure {

/// False where the rule is the host's to compute.
bool fill_on_device(const InputJob& job, CUstream_st* stream);

}  // namespace gauntlet::lab::inline measure
