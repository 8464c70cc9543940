#include "lab/measure/rank_measurements.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/check.h"

namespace gauntlet::lab::inline measure {
namespace {

void merge_verification(VerificationResult& total, const VerificationResult& own) {
  if (own.max_error >= total.max_error) {
    total.max_error = own.max_error;
    total.bound = own.bound;
  }
  total.checks += own.checks;
  total.timed_checks += own.timed_checks;
  total.recomputed_percent = std::min(total.recomputed_percent, own.recomputed_percent);
  total.seen_percent = std::min(total.seen_percent, own.seen_percent);
}

void merge_side(SideMeasurement& total, const SideMeasurement& own) {
  total.error = std::max(total.error, own.error);
  for (const auto& [name, blocks] : own.distributions) {
    auto& all = total.distributions[name];
    all.resize(std::max(all.size(), blocks.size()));
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      all[block].insert(all[block].end(), blocks[block].begin(), blocks[block].end());
    }
  }
}

void average_outcomes(Measurement& total, const std::vector<Measurement>& ranks) {
  for (std::size_t side = 0; side < total.sides.size(); ++side) {
    std::map<std::string, int> counts;
    auto& means = total.sides[side].outcomes;
    means.clear();
    for (const Measurement& own : ranks) {
      for (const auto& [name, value] : own.sides[side].outcomes) {
        means[name] += (value - means[name]) / ++counts[name];
      }
    }
  }
}

}  // namespace

Measurement merge_ranks(const std::vector<Measurement>& ranks) {
  check(!ranks.empty(), "a job has at least one rank");
  Measurement total = ranks.front();
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    const Measurement& own = ranks[rank];
    check(own.sides.size() == total.sides.size(), "ranks measured different sides");
    merge_verification(total.verification, own.verification);
    for (std::size_t side = 0; side < total.sides.size(); ++side) {
      merge_side(total.sides[side], own.sides[side]);
    }
    total.set_bytes += own.set_bytes;
    total.ok = total.ok && own.ok;
  }
  average_outcomes(total, ranks);
  if (total.ok) return total;
  // Those that only heard of it say so; the one that found it says what it found.
  const auto found_it = [](const Measurement& own) {
    return !own.ok && own.reason.find(kOnAnotherRank) == std::string::npos;
  };
  const auto first = std::ranges::find_if(ranks, found_it);
  // What all of them saw (work beside the clock, which they share) is nobody's in particular.
  if (first == ranks.end() || std::ranges::all_of(ranks, found_it)) return total;
  total.side = first->side;
  total.reason = fmt::format("rank {}: {}", first - ranks.begin(), first->reason);
  return total;
}

}  // namespace gauntlet::lab::inline measure
