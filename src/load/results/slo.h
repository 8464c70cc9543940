// What a good answer is: the latencies that a user was promised.
#pragma once
#include <optional>
#include <string>

#include "core/expected.h"
#include "load/results/record.h"

namespace gauntlet::load::inline results {

struct Slo {
  std::optional<double> ttft_s;
  std::optional<double> tpot_s;
  std::optional<double> e2e_s;

  /// "ttft=1,tpot=0.05", in seconds; e2e, too.
  static Expected<Slo> parse(const std::string& text);
  bool is_given() const { return ttft_s || tpot_s || e2e_s; }
  /// Answered in full, and within every limit given.
  bool is_met_by(const RequestRecord& record) const;
};

}  // namespace gauntlet::load::inline results
