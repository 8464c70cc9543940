// What is asked, request by request: lengths, shared beginnings and times, all fixed by the seed
// before anything is sent, so that two servers can be given the same load.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/expected.h"
#include "load/workload/lengths.h"
#include "load/workload/trace.h"

namespace gauntlet::load::inline workload {

/// A share of the prompts begins with one of a few prefixes; the others with as many tokens of
/// their own, so that sharing does not change a length.
struct SharedPrefix {
  std::int64_t groups = 0;  // 0: none
  std::int64_t tokens = 0;
  double share = 1;

  /// "4:256": one of 4 prefixes of 256 tokens before every prompt; "4:256:80%": before four in
  /// five.
  static Expected<SharedPrefix> parse(const std::string& text);
};

struct WorkloadSpec {
  Lengths prompt_tokens = Lengths::fixed(128);
  Lengths output_tokens = Lengths::fixed(64);
  SharedPrefix prefix;
  std::vector<TraceLine>
      trace;  // instead of all of these; repeated from its start by a closed loop
  std::uint64_t seed = 1;
};

struct PlannedRequest {
  std::int64_t prompt_tokens = 0;  // with the prefix; 0 with a prompt of a trace
  std::int64_t output_tokens = 1;
  std::int64_t prefix_tokens = 0;  // of these, of the group's prefix
  std::int64_t group = 0;
  std::string prompt;
  std::uint64_t seed = 0;  // of its own tokens
};

/// The same for the same spec and index.
PlannedRequest plan_request(const WorkloadSpec& spec, std::int64_t index);

}  // namespace gauntlet::load::inline workload
