// How the lab makes counts that are its own. No pair includes this: what a pair counts is its word.
#pragma once
#include "lab/author/counted.h"

namespace gauntlet::lab::inline author {

struct LabCounts {
  /// `name` is one of those in lab_counts.cc.
  static Count make(std::string name, std::function<double()> total,
                    std::function<double()> per = {});
  static bool is_name(const std::string& name);
  static void attach(Side& side, std::function<std::map<std::string, double>()> outcomes);
};

}  // namespace gauntlet::lab::inline author
