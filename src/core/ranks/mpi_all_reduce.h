// MPI's own all-reduce, to be measured beside the all-sum of a group.
#pragma once
#include <functional>
#include <span>

#include "core/expected.h"

namespace gauntlet::ranks {

/// Adds everyone's numbers up in place, in an order of MPI's choice. False: it failed.
using AllReduce = std::function<bool(std::span<float> numbers)>;

/// For the thread that joined an MPI job, as long as that lasts.
Expected<AllReduce> find_mpi_all_reduce();

}  // namespace gauntlet::ranks
