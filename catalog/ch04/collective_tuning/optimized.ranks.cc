// For each size the algorithm that was fastest over these links when the side was made.
#include <array>
#include <chrono>
#include <limits>
#include <vector>

#include "catalog/ch04/collective_tuning/algorithms.h"
#include "catalog/ch04/collective_tuning/pair.h"
#include "lab/author/linked.h"

namespace gauntlet::ch04::collective_tuning::ranks {
namespace {

/// The least of some tries, each as long as its slowest rank took: all ranks know the same.
double seconds_of(Algorithm algorithm, Group& group, std::span<float> numbers) {
  constexpr int kTries = 3;
  using Clock = std::chrono::steady_clock;
  double least = std::numeric_limits<double>::infinity();
  for (int turn = 0; turn < kTries; ++turn) {
    must(group.barrier());
    const auto begin = Clock::now();
    sum_by(algorithm, group, numbers);
    const std::chrono::duration<double> own = Clock::now() - begin;
    least = std::min(least, must(gauntlet::ranks::all_max(group, own.count())));
  }
  return least;
}

std::array<Algorithm, kLengths.size()> fastest(Group& group) {
  std::array<Algorithm, kLengths.size()> chosen{};
  for (std::size_t i = 0; i < kLengths.size(); ++i) {
    std::vector<float> numbers(static_cast<std::size_t>(kLengths[i]));
    double best = std::numeric_limits<double>::infinity();
    for (const Algorithm algorithm : kAlgorithms) {
      if (!can(algorithm, group.size())) continue;
      const double seconds = seconds_of(algorithm, group, numbers);
      if (seconds >= best) continue;
      best = seconds;
      chosen[i] = algorithm;
    }
  }
  return chosen;
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Ranks& ranks) {
  const auto linked = lab::linked(ranks, p.fabric);
  const auto chosen = fastest(*linked->group);
  return lab::counted(lab::wire_ms(linked), [p, linked, chosen] {
    for_messages(p, [&](std::size_t message, std::span<float> sum) {
      sum_by(chosen[message], *linked->group, sum);
    });
  });
}

}  // namespace gauntlet::ch04::collective_tuning::ranks
