// The journal's cells as types. They are Duel, ServeDuel, ServeFigures, LoadTest, RepeatedTest,
// PrecisionTest, StepSamples, CheckedLayer, EnergyUse, RouterLoads, TimeSplits and CounterValues.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/expected.h"
#include "study/journal.h"
#include "study/results/measured.h"

namespace gauntlet::study::inline results {

/// Compiled for these types in cell_json.cc, which alone needs their fields.
template <class T>
struct CellJson {
  static nlohmann::json write(const T& value);
  static Expected<Measured<T>> read(const Journal& journal, const std::string& key);
};

template <class T>
nlohmann::json cell_to_json(const T& value) {
  return CellJson<T>::write(value);
}
/// Of a cell that could not be measured.
nlohmann::json gap_to_json(const std::string& why);

/// An error says which field of which cell is not as cell_to_json() writes it.
template <class T>
Expected<Measured<T>> read_cell(const Journal& journal, const std::string& key) {
  return CellJson<T>::read(journal, key);
}

/// Reads cell after cell; the first fault is kept and ends the reading.
class CellReader {
 public:
  explicit CellReader(const Journal& journal) : journal_(journal) {}

  template <class T>
  Measured<T> read(const std::string& key) {
    if (fault_) return {};
    auto cell = read_cell<T>(journal_, key);
    if (cell) return std::move(*cell);
    fault_ = cell.error();
    return {};
  }
  const std::optional<Error>& fault() const { return fault_; }
  const Journal& journal() const { return journal_; }

 private:
  const Journal& journal_;
  std::optional<Error> fault_;
};

}  // namespace gauntlet::study::inline results
