// How long some intervals last together, and how much of that others cover.
#pragma once
#include <algorithm>
#include <vector>

namespace gauntlet::ranks {

struct Interval {
  double begin = 0;
  double end = 0;
};

/// In order, those that touch as one.
inline std::vector<Interval> merged(std::vector<Interval> intervals) {
  std::ranges::sort(intervals, {}, &Interval::begin);
  std::vector<Interval> together;
  for (const Interval& one : intervals) {
    if (!(one.end > one.begin)) continue;
    if (!together.empty() && one.begin <= together.back().end) {
      together.back().end = std::max(together.back().end, one.end);
    } else {
      together.push_back(one);
    }
  }
  return together;
}

struct Overlap {
  double covered = 0;  // by the first
  double shared = 0;   // by both
};

inline Overlap overlap_of(std::vector<Interval> first, std::vector<Interval> second) {
  Overlap overlap;
  const auto a = merged(std::move(first)), b = merged(std::move(second));
  for (const Interval& one : a) overlap.covered += one.end - one.begin;
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    overlap.shared += std::max(0.0, std::min(x->end, y->end) - std::max(x->begin, y->begin));
    if (x->end < y->end) {
      ++x;
    } else {
      ++y;
    }
  }
  return overlap;
}

}  // namespace gauntlet::ranks
