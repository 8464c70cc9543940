// Expectations: what a machine is known to reach, one file per machine key, changed only on
// request. Two boards of the same key differ by more than two runs of one board, so each board's
// figures are kept, and what is tolerated grows by how far the boards are apart: a board that was
// never recorded is held to what boards like the recorded ones may be expected to do.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/expected.h"
#include "lab/records/result.h"
#include "lab/records/run_record.h"

namespace gauntlet::lab::inline records {

/// The machine key under which a backend's expectations are kept.
std::string machine_key_of(const MachineInfo& machine, BackendKind backend);

/// Where a recorded figure comes from.
struct Provenance {
  std::string run_id;
  std::string commit;
  std::int64_t recorded_at = 0;
  std::string board;  // UUIDs of the GPUs; empty on a CPU, whose key is one board
};
Provenance provenance_of(const RunRecord& record, BackendKind backend);

/// What one run on one board recorded.
struct BoardFigure {
  double value = 0;
  double tolerance = 0;  // relative, from the noise of the run, within limits
};
struct BoardRatio {
  std::string from;
  std::string to;
  BoardFigure speedup;
  std::optional<BoardFigure> gain = {};  // of the goal's metric, where the goal is not speed
};
struct BoardExpectation {
  Provenance provenance;
  std::string status;  // passed, no_gain, or regressed where that was accepted
  std::vector<BoardRatio> ratios;
  std::map<std::string, BoardFigure> times_ns;  // by side, on a GPU, where times repeat
};

/// Is the board of a run among those that an entry has figures of?
enum class Board { recorded, another };

/// What is expected of a board.
struct ExpectedValue {
  double value = 0;      // the middle of the boards
  double tolerance = 0;  // relative: within a board plus between boards
  double between = 0;    // of that, between boards
};

struct Expectation {
  std::map<std::string, std::int64_t> knobs;
  std::vector<BoardExpectation> boards;  // never empty; the newest last

  /// Nothing where no board has that comparison or side.
  std::optional<ExpectedValue> ratio(const std::string& from, const std::string& to,
                                     Board board = Board::recorded) const;
  std::optional<ExpectedValue> gain(const std::string& from, const std::string& to,
                                    Board board = Board::recorded) const;
  std::optional<ExpectedValue> time_ns(const std::string& side,
                                       Board board = Board::recorded) const;
  /// An entry without a name may be of any board.
  Board standing_of(const std::string& board) const;
  const BoardExpectation& newest() const { return boards.back(); }
};

class Expectations {
 public:
  /// What recording does with the figures of other boards. They are dropped where they no longer
  /// hold: the program changed, not the board.
  enum class OtherBoards { keep, drop };

  /// An absent file is an empty set; a broken one is an error. Files of version 1, which knew
  /// neither boards nor ladders, are read too.
  static Expected<Expectations> load(const std::string& folder, const std::string& machine_key);

  bool empty() const { return entries_.empty(); }
  const std::string& machine_key() const { return machine_key_; }
  const std::map<std::string, Expectation>& entries() const { return entries_; }
  const Expectation* find(const Result& result) const;

  /// Records a result that was verified, also a regressed one, which is then what to expect of its
  /// board; others, and those of a sweep, are left out: false. Figures of other knobs go, and so do
  /// those that name no board once one is named. Where other boards' are kept, so are the board's
  /// own of yardsticks that were absent.
  bool record(const Result& result, const Provenance& provenance,
              OtherBoards others = OtherBoards::keep);
  Expected<void> save(const std::string& folder) const;

 private:
  std::string machine_key_;
  std::map<std::string, Expectation> entries_;  // by id and Result::on()
};

/// How a result stands to its expectation.
struct Comparison {
  /// None: nothing was measured, or how far boards are apart is not known.
  enum class Verdict { none, as_expected, better, regressed };
  Verdict verdict = Verdict::none;
  std::string reason;
};
/// `board` is that of the result, as Provenance has it.
Comparison compare_with(const Expectation& expectation, const Result& result,
                        const std::string& board);

/// $GAUNTLET_EXPECTATIONS, ./expectations, or the expectations of the tree the program was built
/// in.
std::string expectations_folder(const std::string& program);

}  // namespace gauntlet::lab::inline records
