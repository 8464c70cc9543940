// must(): for code that has nothing to go on with when the ranks lose each other.
#pragma once
#include <utility>

#include "core/check.h"
#include "core/expected.h"

namespace gauntlet::ranks {

/// What a call of the group gave; a Fault with the error's sentence where it failed.
template <class T>
T must(Expected<T> result, std::source_location where = std::source_location::current()) {
  if (!result) fail(result.error().message, where);
  return std::move(*result);
}
inline void must(const Expected<void>& result,
                 std::source_location where = std::source_location::current()) {
  if (!result) fail(result.error().message, where);
}

}  // namespace gauntlet::ranks
