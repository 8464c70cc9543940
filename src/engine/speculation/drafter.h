// Who guesses what follows. A guess may be anything: it costs time, never correctness.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/kv/kv_pool.h"

namespace gauntlet::engine::inline speculation {

struct DraftWish {
  std::int64_t id = 0;  // of the request
  SequenceId sequence = 0;
  std::span<const std::int32_t> tokens;  // all that are known
  std::int64_t most = 0;                 // guesses; their positions are reserved
};

using Draft = std::vector<std::int32_t>;

class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual std::string_view name() const = 0;
  /// One draft for each wish, maybe empty, together: a model drafts for all in one batch. Nothing
  /// else is under way.
  virtual std::vector<Draft> propose(std::span<const DraftWish> wishes) = 0;
  /// The request is over.
  virtual void end(std::int64_t /*id*/) {}
};

}  // namespace gauntlet::engine::inline speculation
