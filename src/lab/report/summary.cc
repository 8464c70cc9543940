#include "lab/report/summary.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "lab/report/format.h"

namespace gauntlet::lab::report {
namespace {

constexpr Status kAllStatuses[] = {Status::passed, Status::no_gain, Status::regressed,
                                   Status::wrong,  Status::crashed, Status::timed_out,
                                   Status::skipped};

bool counts_for_headline(const Result& result) {
  return has_figures(result) && result.kind == "comparison" && result.goal == "speed" &&
         !result.is_ladder();
}

/// Geometric mean that weighs each target the same, however many points of a sweep it has.
class TargetMean {
 public:
  void add(const Result& result) {
    auto& [sum, count] = log_speedups_[result.id];
    sum += std::log(result.headline().speedup.value);
    ++count;
  }
  int num_targets() const { return static_cast<int>(log_speedups_.size()); }
  double value() const {
    double sum = 0;
    for (const auto& [id, of_target] : log_speedups_) sum += of_target.first / of_target.second;
    return log_speedups_.empty() ? 0 : std::exp(sum / num_targets());
  }

 private:
  std::map<std::string, std::pair<double, int>> log_speedups_;
};

std::string plural(int count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace

bool has_figures(const Result& result) {
  return result.measured() && result.headline().speedup.value > 0 &&
         (result.status == Status::passed || result.status == Status::no_gain ||
          result.status == Status::regressed);
}

Summary summarize(const RunRecord& record) {
  Summary summary;
  summary.total = static_cast<int>(record.results.size());
  for (const Status status : kAllStatuses) summary.counts[status] = 0;
  std::map<BackendKind, TargetMean> passed, measured;
  std::set<std::pair<std::string, BackendKind>> demonstrations, labs, other_goals;
  for (const Result& result : record.results) {
    ++summary.counts[result.status];
    TargetMean& of_backend = measured[result.backend];
    if (counts_for_headline(result)) {
      of_backend.add(result);
      if (result.status == Status::passed) passed[result.backend].add(result);
    } else if (has_figures(result)) {
      auto& left_out = result.kind == "demonstration" ? demonstrations
                       : result.is_ladder()           ? labs
                                                      : other_goals;
      left_out.insert({result.id, result.backend});
    }
  }
  for (const BackendKind backend : {BackendKind::cuda, BackendKind::cpu, BackendKind::ranks}) {
    if (!measured.contains(backend)) continue;
    const TargetMean& mean = measured[backend];
    summary.headlines.push_back({.backend = backend,
                                 .num_passed = passed[backend].num_targets(),
                                 .passed_speedup = passed[backend].value(),
                                 .num_measured = mean.num_targets(),
                                 .measured_speedup = mean.value()});
  }
  summary.demonstrations = static_cast<int>(demonstrations.size());
  summary.labs = static_cast<int>(labs.size());
  summary.other_goals = static_cast<int>(other_goals.size());
  return summary;
}

std::string words_of(Status status) {
  std::string words = name_of(status);
  for (char& c : words) {
    if (c == '_') c = ' ';
  }
  return words;
}

std::string counts_sentence(const Summary& summary) {
  std::string sentence = plural(summary.total, "result", "results");
  const char* separator = ": ";
  for (const auto& [status, count] : summary.counts) {
    if (count == 0) continue;
    sentence += fmt::format("{}{} {}", separator, count, words_of(status));
    if (status == Status::skipped) sentence += " (a skip is not a pass)";
    separator = ", ";
  }
  return sentence + ".";
}

std::string headline_sentence(const Headline& headline) {
  if (headline.num_measured == 0) return "no comparison pair was measured";
  const std::string all = fmt::format("{} over all {} measured, gain or not",
                                      ratio(headline.measured_speedup), headline.num_measured);
  if (headline.num_passed == 0) return "no comparison pair passed; " + all;
  return fmt::format(
      "geometric mean of {}; {}",
      plural(headline.num_passed, "passed comparison pair", "passed comparison pairs"), all);
}

std::string left_out_sentence(const Summary& summary) {
  std::vector<std::string> parts;
  if (summary.demonstrations > 0) {
    parts.push_back(plural(summary.demonstrations, "demonstration", "demonstrations") +
                    (summary.demonstrations == 1 ? " (its baseline exists to teach)"
                                                 : " (their baselines exist to teach)"));
  }
  if (summary.labs > 0) {
    parts.push_back(plural(summary.labs, "lab", "labs") + (summary.labs == 1
                                                               ? " (it combines techniques)"
                                                               : " (they combine techniques)"));
  }
  if (summary.other_goals > 0) {
    parts.push_back(plural(summary.other_goals, "pair", "pairs") +
                    " judged by another goal than speed");
  }
  return parts.empty() ? "" : fmt::format("Left out of the means: {}.", fmt::join(parts, "; "));
}

std::string machine_line(const MachineInfo& machine) {
  std::string line;
  if (!machine.gpus.empty()) {
    if (machine.gpus.size() > 1) line += fmt::format("{}× ", machine.gpus.size());
    line += machine.gpus[0].name + " · ";
  }
  return line + machine.cpu.model + ", " + plural(machine.cpu.cores, "core", "cores");
}

}  // namespace gauntlet::lab::report
