// How a study's time is shared out among its cells: what each may take is known only after others
// like it were measured, so the estimate learns as cells get done. Reads no clock.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gauntlet::study::inline bench {

/// In this order cells get time; where it ends, the last go without. Layers never do, and they
/// leave time for the options.
enum class Rank { layers, company, causes, load, sweeps };

/// A cell as the clock sees it.
struct CellTime {
  std::string kind;  // cells of a kind cost alike
  Rank rank = Rank::layers;
  double weight = 0;   // share of the time for repetitions; 0: it does not repeat
  double setup_s = 0;  // beside its repetitions: a guess that is right among cells of a kind
};

struct TimeLimits {
  double repeat_s = 100;  // shared out among repetitions
  double end_s = 0;       // when all must be over; 0: whenever it is
};

class TimeBudget {
 public:
  TimeBudget(std::vector<CellTime> cells, const TimeLimits& limits);

  /// Time that passed outside of cells.
  void spend(double seconds) { spent_s_ += seconds; }
  /// Seconds that a cell may repeat for; none: it no longer fits.
  std::optional<double> allot(std::size_t cell) const;
  /// It took so long, repetitions included.
  void finish(std::size_t cell, double took_s);
  /// Measured earlier, or left out: it takes no more time.
  void leave(std::size_t cell) { ended_[cell] = true; }
  /// What the cells to come will take.
  double left_s() const;

 private:
  struct Learned {
    double guessed_s = 0;
    double took_s = 0;
  };
  double setup_s(std::size_t cell) const;
  double share_s(std::size_t cell) const;

  std::vector<CellTime> cells_;
  std::vector<bool> ended_;
  TimeLimits limits_;
  double weights_ = 0;
  double spent_s_ = 0;
  std::map<std::string, Learned> learned_;  // by kind
  Learned all_;
};

}  // namespace gauntlet::study::inline bench
