#include "lab/author/lab_counts.h"

#include <set>
#include <utility>

#include "core/check.h"

namespace gauntlet::lab::inline author {

bool LabCounts::is_name(const std::string& name) {
  static const std::set<std::string> kNames = {"atomic_additions", "between_kib",    "busy_cpus",
                                               "copied_bytes",     "exposed_ms",     "forks",
                                               "hidden_percent",   "last_worker",    "messages",
                                               "migrations",       "most_held_kib",  "read_calls",
                                               "reads_in_flight",  "sent_kib",       "waiting_ms",
                                               "wire_ms",          "working_threads"};
  return kNames.contains(name);
}

Count LabCounts::make(std::string name, std::function<double()> total,
                      std::function<double()> per) {
  check(is_name(name), "a count of the lab's whose name is not reserved: " + name);
  Count count{.name = std::move(name), .total = std::move(total), .per = std::move(per)};
  count.seal.set_ = true;
  return count;
}

void LabCounts::attach(Side& side, std::function<std::map<std::string, double>()> outcomes) {
  side.counted_by_lab_ = std::move(outcomes);
}

Outcomes Side::take_outcomes() const {
  Outcomes all;
  if (counted_by_lab_) all.values = counted_by_lab_();
  if (!outcomes) return all;
  for (const auto& [name, value] : outcomes()) {
    if (LabCounts::is_name(name)) {
      all.stated = name;
    } else {
      all.values[name] = value;
    }
  }
  return all;
}

}  // namespace gauntlet::lab::inline author
