#include "lab/records/expectations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/os/files.h"
#include "core/text/json_fields.h"
#include "lab/records/expectations_json.h"
#include "stats/median.h"

namespace gauntlet::lab::inline records {
namespace {

using nlohmann::json;

constexpr int kExpectationsVersion = 2;

// Three half-widths of the interval, but never tighter than runs of the same binary on one board
// agree, nor so loose that a real loss would pass.
constexpr double kMinTolerance = 0.03;
constexpr double kMaxTolerance = 0.20;

BoardFigure figure_of(const stats::Interval& interval) {
  return {
      .value = interval.value,
      .tolerance = std::clamp(3 * interval.relative_half_width(), kMinTolerance, kMaxTolerance)};
}

/// Every recorded board lies within `between` of the middle, so that none of them falls behind what
/// it recorded itself; the noise of the widest comes on top.
ExpectedValue expect_of_recorded(const std::vector<BoardFigure>& boards, double within) {
  const auto [lowest, highest] = std::ranges::minmax(boards, {}, &BoardFigure::value);
  const double sum = lowest.value + highest.value;
  const double between = (highest.value - lowest.value) / sum;
  return {.value = sum / 2, .tolerance = within + between, .between = between};
}

/// Another board lies where Student's prediction of one more says; one board predicts nothing.
std::optional<ExpectedValue> expect_of_another(const std::vector<BoardFigure>& boards,
                                               double within) {
  if (boards.size() < 2) return std::nullopt;
  std::vector<double> logs;
  for (const BoardFigure& board : boards) logs.push_back(std::log(board.value));
  const stats::Interval one_more = stats::prediction_interval(logs);
  const double between = std::exp(one_more.hi - one_more.value) - 1;
  return ExpectedValue{
      .value = std::exp(one_more.value), .tolerance = within + between, .between = between};
}

std::optional<ExpectedValue> expect(const std::vector<BoardFigure>& boards, Board board) {
  if (boards.empty()) return std::nullopt;
  const double within = std::ranges::max(boards, {}, &BoardFigure::tolerance).tolerance;
  return board == Board::recorded ? expect_of_recorded(boards, within)
                                  : expect_of_another(boards, within);
}

std::string key_of(const Result& result) { return result.id + " " + result.on(); }

std::string path_of(const std::string& folder, const std::string& machine_key) {
  return folder + "/" + machine_key + ".json";
}

/// "of run r1" or "of 2 boards"
std::string source_of(const Expectation& expectation) {
  return expectation.boards.size() == 1
             ? fmt::format("of run {}", expectation.newest().provenance.run_id)
             : fmt::format("of {} boards", expectation.boards.size());
}

bool is_below(const stats::Interval& figure, const std::optional<ExpectedValue>& expected) {
  return expected && figure.hi < expected->value * (1 - expected->tolerance);
}

/// A goal other than speed is held to its metric first, and to its speed as well.
std::string fell_behind(const Expectation& expectation, const Result& result, Board board) {
  for (const ComparisonResult& comparison : result.comparisons) {
    const std::string which = comparison.kind == "pair"
                                  ? ""
                                  : fmt::format(" of {} over {}", comparison.to, comparison.from);
    const auto sentence = [&](const std::string& what, const stats::Interval& figure,
                              const ExpectedValue& expected) {
      return fmt::format(
          "{}{} {:.3f} [{:.3f}, {:.3f}] fell below the expected {:.3f} (−{:.0f}%) {}", what, which,
          figure.value, figure.lo, figure.hi, expected.value, expected.tolerance * 100,
          source_of(expectation));
    };
    const auto gain = expectation.gain(comparison.from, comparison.to, board);
    if (is_below(comparison.gain, gain)) {
      return sentence("the gain in " + result.goal_metric, comparison.gain, *gain);
    }
    const auto speedup = expectation.ratio(comparison.from, comparison.to, board);
    if (is_below(comparison.speedup, speedup)) {
      return sentence("speedup", comparison.speedup, *speedup);
    }
  }
  // The last side first: of all that got slower, it is the one that people wait for.
  for (auto side = result.sides.rbegin(); side != result.sides.rend(); ++side) {
    const auto expected = expectation.time_ns(side->name, board);
    if (!expected || !(side->ns.lo > expected->value * (1 + expected->tolerance))) continue;
    return fmt::format("{} takes {:.1f} µs, expected {:.1f} µs (+{:.0f}%) {}", side->name,
                       side->ns.value / 1e3, expected->value / 1e3, expected->tolerance * 100,
                       source_of(expectation));
  }
  return "";
}

/// What is known of yardsticks that a result could not have: that they were absent changes nothing.
void keep_absent(const BoardExpectation& known, const Result& result, BoardExpectation& board) {
  for (const AbsentSide& absent : result.absent) {
    for (const BoardRatio& ratio : known.ratios) {
      if (ratio.from == absent.name) board.ratios.push_back(ratio);
    }
    const auto time = known.times_ns.find(absent.name);
    if (time != known.times_ns.end()) board.times_ns.insert(*time);
  }
}

}  // namespace

std::string machine_key_of(const MachineInfo& machine, BackendKind backend) {
  return backend == BackendKind::cuda ? machine.gpu_key() : machine.cpu_key();
}

Provenance provenance_of(const RunRecord& record, BackendKind backend) {
  Provenance provenance{.run_id = record.run_id,
                        .commit = record.build.commit,
                        .recorded_at = record.started_at,
                        .board = ""};
  if (backend != BackendKind::cuda) return provenance;
  std::vector<std::string> uuids;
  for (const GpuInfo& gpu : record.machine.gpus) uuids.push_back(gpu.uuid);
  std::ranges::sort(uuids);
  provenance.board = fmt::format("{}", fmt::join(uuids, "+"));
  return provenance;
}

std::optional<ExpectedValue> Expectation::ratio(const std::string& from, const std::string& to,
                                                Board board) const {
  std::vector<BoardFigure> figures;
  for (const BoardExpectation& known : boards) {
    for (const BoardRatio& ratio : known.ratios) {
      if (ratio.from == from && ratio.to == to) figures.push_back(ratio.speedup);
    }
  }
  return expect(figures, board);
}

std::optional<ExpectedValue> Expectation::gain(const std::string& from, const std::string& to,
                                               Board board) const {
  std::vector<BoardFigure> figures;
  for (const BoardExpectation& known : boards) {
    for (const BoardRatio& ratio : known.ratios) {
      if (ratio.from == from && ratio.to == to && ratio.gain) figures.push_back(*ratio.gain);
    }
  }
  return expect(figures, board);
}

std::optional<ExpectedValue> Expectation::time_ns(const std::string& side, Board board) const {
  std::vector<BoardFigure> figures;
  for (const BoardExpectation& known : boards) {
    const auto time = known.times_ns.find(side);
    if (time != known.times_ns.end()) figures.push_back(time->second);
  }
  return expect(figures, board);
}

Board Expectation::standing_of(const std::string& board) const {
  const bool known = std::ranges::any_of(boards, [&](const BoardExpectation& recorded) {
    const std::string& name = recorded.provenance.board;
    return name.empty() || name == board;
  });
  return known ? Board::recorded : Board::another;
}

Expected<Expectations> Expectations::load(const std::string& folder,
                                          const std::string& machine_key) {
  Expectations result;
  result.machine_key_ = machine_key;
  const std::string path = path_of(folder, machine_key);
  if (!std::filesystem::exists(path)) return result;
  const auto text = read_file(path);
  if (!text) return text.error();
  try {
    const json document = json::parse(*text);
    const int version = small_at(document, "schema_version", 1);
    if (version < 1 || version > kExpectationsVersion) {
      return Error{fmt::format("{} has version {}, this binary reads 1 to {}", path, version,
                               kExpectationsVersion)};
    }
    for (const auto& [key, entry] : document.at("expectations").items()) {
      result.entries_[key] = expectation_from_json(entry, version);
    }
  } catch (const std::exception& error) {
    return Error{fmt::format("{} is not a file of expectations: {}", path, error.what())};
  }
  return result;
}

const Expectation* Expectations::find(const Result& result) const {
  const auto found = entries_.find(key_of(result));
  if (found == entries_.end() || found->second.knobs != result.knobs) return nullptr;
  return &found->second;
}

bool Expectations::record(const Result& result, const Provenance& provenance, OtherBoards others) {
  if (!result.sweep_key.empty() || !result.measured()) return false;
  if (!(result.headline().speedup.value > 0)) return false;
  if (result.status != Status::passed && result.status != Status::no_gain &&
      result.status != Status::regressed) {
    return false;
  }
  BoardExpectation board{
      .provenance = provenance, .status = name_of(result.status), .ratios = {}, .times_ns = {}};
  for (const ComparisonResult& comparison : result.comparisons) {
    if (!(comparison.speedup.value > 0)) continue;
    board.ratios.push_back(
        {.from = comparison.from, .to = comparison.to, .speedup = figure_of(comparison.speedup)});
    if (comparison.gain.value > 0) board.ratios.back().gain = figure_of(comparison.gain);
  }
  if (result.backend == BackendKind::cuda) {
    for (const SideResult& side : result.sides) board.times_ns[side.name] = figure_of(side.ns);
  }
  Expectation& expectation = entries_[key_of(result)];
  if (others == OtherBoards::drop || expectation.knobs != result.knobs) expectation.boards.clear();
  for (const BoardExpectation& known : expectation.boards) {
    if (known.provenance.board == provenance.board) keep_absent(known, result, board);
  }
  std::erase_if(expectation.boards, [&](const BoardExpectation& known) {
    const std::string& name = known.provenance.board;
    return name.empty() || name == provenance.board;
  });
  expectation.knobs = result.knobs;
  expectation.boards.push_back(std::move(board));
  return true;
}

Expected<void> Expectations::save(const std::string& folder) const {
  json entries = json::object();
  for (const auto& [key, entry] : entries_) entries[key] = to_json(entry);
  const json document = {{"machine", machine_key_},
                         {"schema_version", kExpectationsVersion},
                         {"expectations", entries}};
  if (const auto made = make_folders(folder); !made) return made;
  return atomic_write_file(path_of(folder, machine_key_), document.dump(1) + "\n");
}

Comparison compare_with(const Expectation& expectation, const Result& result,
                        const std::string& board) {
  using Verdict = Comparison::Verdict;
  if (!result.measured()) return {};
  const Board standing = expectation.standing_of(board);
  if (standing == Board::another && expectation.boards.size() == 1) {
    const std::string behind = fell_behind(expectation, result, Board::recorded);
    return {Verdict::none, behind.empty()
                               ? ""
                               : "not judged, since it was recorded on one other board: " + behind};
  }
  if (std::string reason = fell_behind(expectation, result, standing); !reason.empty()) {
    return {Verdict::regressed, std::move(reason)};
  }
  const ComparisonResult& headline = result.headline();
  const bool by_gain = headline.gain.value > 0;
  const auto expected = by_gain ? expectation.gain(headline.from, headline.to, standing)
                                : expectation.ratio(headline.from, headline.to, standing);
  const stats::Interval& figure = by_gain ? headline.gain : headline.speedup;
  if (expected && figure.lo > expected->value * (1 + expected->tolerance)) {
    return {Verdict::better, fmt::format("{} {:.3f} is above the expected {:.3f}; record it with "
                                         "--update-expectations",
                                         by_gain ? "the gain in " + result.goal_metric : "speedup",
                                         figure.value, expected->value)};
  }
  return {Verdict::as_expected, ""};
}

std::string expectations_folder(const std::string& program) {
  if (const char* chosen = std::getenv("GAUNTLET_EXPECTATIONS")) return chosen;
  if (std::filesystem::is_directory("expectations")) return "expectations";
  const auto beside = std::filesystem::path(program).parent_path() / "../../expectations";
  if (std::filesystem::is_directory(beside)) return beside.lexically_normal().string();
  return "expectations";
}

}  // namespace gauntlet::lab::inline records
