#include "study/results/cell_json.h"

#include <fmt/format.h>

#include "study/results/cell_fields.h"
#include "study/results/json_reader.h"
#include "study/results/json_writer.h"

namespace gauntlet::study::inline results {

using nlohmann::json;

json gap_to_json(const std::string& why) { return {{kGap, why}}; }

template <class T>
json CellJson<T>::write(const T& value) {
  return JsonWriter::write(value);
}

template <class T>
Expected<Measured<T>> CellJson<T>::read(const Journal& journal, const std::string& key) {
  auto cell = JsonReader::read<Measured<T>>(journal.at(key));
  if (cell) return cell;
  return Error{fmt::format("the journal's cell {} cannot be read: {}", key, cell.error().message),
               cell.error().kind};
}

template struct CellJson<Duel>;
template struct CellJson<ServeDuel>;
template struct CellJson<ServeFigures>;
template struct CellJson<LoadTest>;
template struct CellJson<RepeatedTest>;
template struct CellJson<PrecisionTest>;
template struct CellJson<StepSamples>;
template struct CellJson<CheckedLayer>;
template struct CellJson<EnergyUse>;
template struct CellJson<RouterLoads>;
template struct CellJson<TimeSplits>;
template struct CellJson<CounterValues>;

}  // namespace gauntlet::study::inline results
