#include "lab/measure/observations.h"

#include <utility>

namespace gauntlet::lab::inline measure {
namespace {

constexpr std::size_t kMostValues = 100'000;  // of a distribution that are kept, in whole blocks

}  // namespace

std::map<std::string, double> Observations::outcomes_of(std::size_t side, const Side& from) {
  Outcomes all = from.take_outcomes();
  if (!all.stated.empty()) sides_[side].stated = std::move(all.stated);
  return std::move(all.values);
}

void Observations::discard(std::size_t side, const Side& from) {
  outcomes_of(side, from);
  if (from.distributions) from.distributions();
}

void Observations::take(std::size_t side, const Side& from) {
  OfSide& own = sides_[side];
  for (const auto& [name, value] : outcomes_of(side, from)) {
    own.pending[name].sum += value;
    own.pending[name].count += 1;
  }
  if (!from.distributions) return;
  for (const auto& [name, values] : from.distributions()) {
    own.block[name].insert(own.block[name].end(), values.begin(), values.end());
  }
}

void Observations::keep_block() {
  for (OfSide& side : sides_) {
    for (const auto& [name, mean] : side.pending) {
      side.kept[name].sum += mean.sum;
      side.kept[name].count += mean.count;
    }
    for (auto& [name, values] : side.block) {
      std::size_t& num = side.num_values[name];
      if (num + values.size() > kMostValues) continue;
      num += values.size();
      side.blocks[name].push_back(std::move(values));
    }
  }
  drop_block();
}

void Observations::drop_block() {
  for (OfSide& side : sides_) {
    side.pending.clear();
    side.block.clear();
  }
}

void Observations::write_to(std::vector<SideMeasurement>& out) const {
  for (std::size_t side = 0; side < sides_.size(); ++side) {
    for (const auto& [name, mean] : sides_[side].kept) {
      out[side].outcomes[name] = mean.sum / mean.count;
    }
    out[side].distributions = sides_[side].blocks;
  }
}

}  // namespace gauntlet::lab::inline measure
