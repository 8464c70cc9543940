// The parts that a study's results are assembled from.
#pragma once
#include <vector>

#include "study/results/assemble.h"
#include "study/results/cell_json.h"

namespace gauntlet::study::inline results {

Measured<Verification> verification_of(const StudyFacts& facts, CellReader& cells, int layer);
std::vector<LayerResult> layers_of(const StudyFacts& facts, CellReader& cells);
Measured<Total> total_of(CellReader& cells);
std::vector<OptionWorth> leave_one_out(const StudyFacts& facts, CellReader& cells,
                                       const std::vector<LayerResult>& layers);
Sweeps sweeps_of(const StudyFacts& facts, CellReader& cells);
Measured<std::vector<TimeResult>> time_of(CellReader& cells);

}  // namespace gauntlet::study::inline results
