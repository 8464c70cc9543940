// What a rank calls: it goes in front of every message, so that who calls something else is told.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>

#include "core/check.h"

namespace gauntlet::ranks {

struct Call {
  enum class Kind : std::int32_t {
    barrier,
    broadcast,
    all_gather,
    all_gather_parts,
    all_to_all,
    all_sum,
    reduce_scatter,
    send,
    flush,
    put
  } kind = Kind::barrier;
  std::int32_t peer = -1;   // the root, or who receives
  std::uint64_t bytes = 0;  // as far as all ranks say the same
  bool operator==(const Call&) const = default;
};

inline std::string text_of(const Call& call) {
  switch (call.kind) {
    case Call::Kind::barrier:
      return "a barrier";
    case Call::Kind::broadcast:
      return fmt::format("a broadcast of {} bytes from rank {}", call.bytes, call.peer);
    case Call::Kind::all_gather:
      return fmt::format("an all-gather of {} bytes each", call.bytes);
    case Call::Kind::all_gather_parts:
      return fmt::format("an all-gather of {} bytes in all", call.bytes);
    case Call::Kind::all_to_all:
      return "an all-to-all";
    case Call::Kind::all_sum:
      return fmt::format("an all-sum of {} bytes", call.bytes);
    case Call::Kind::reduce_scatter:
      return fmt::format("a reduce-scatter of {} bytes", call.bytes);
    case Call::Kind::send:
      if (call.bytes == std::numeric_limits<std::uint64_t>::max()) {
        return fmt::format("a receive of any length by rank {}", call.peer);
      }
      return fmt::format("a send of {} bytes to rank {}", call.bytes, call.peer);
    case Call::Kind::flush:
      return "single sends";
    case Call::Kind::put:
      return "a wait for puts";
  }
  fail("no such call");
}

}  // namespace gauntlet::ranks
