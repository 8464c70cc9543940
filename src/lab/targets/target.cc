#include "lab/targets/target.h"

#include <algorithm>

#include "core/check.h"

namespace gauntlet::lab::inline targets {

const char* name_of(SidePair::Kind kind) {
  switch (kind) {
    case SidePair::Kind::pair:
      return "pair";
    case SidePair::Kind::step:
      return "step";
    case SidePair::Kind::total:
      return "total";
    case SidePair::Kind::yardstick:
      return "yardstick";
  }
  fail("no such kind of comparison");
}

const std::vector<SideSource>& Target::sides(BackendKind backend) const {
  switch (backend) {
    case BackendKind::cpu:
      return source.cpu;
    case BackendKind::cuda:
      return source.cuda;
    case BackendKind::ranks:
      return source.ranks;
  }
  fail("no such backend");
}

const BackendFacts* Target::declared(BackendKind backend) const {
  const auto& facts = backend == BackendKind::cpu    ? pair.cpu
                      : backend == BackendKind::cuda ? pair.cuda
                                                     : pair.ranks;
  return facts ? &*facts : nullptr;
}

const BackendFacts& Target::facts(BackendKind backend) const {
  const BackendFacts* facts = declared(backend);
  check(facts != nullptr, id() + " declares nothing for backend " + name_of(backend));
  return *facts;
}

std::vector<std::string> Target::needs(BackendKind backend) const {
  std::vector<std::string> needs = pair.needs;
  const auto add = [&](const std::string& need) {
    if (!need.empty() && std::ranges::find(needs, need) == needs.end()) needs.push_back(need);
  };
  if (const BackendFacts* facts = declared(backend)) std::ranges::for_each(facts->needs, add);
  for (const SideSource& side : sides(backend)) {
    if (side.role != SideRole::yardstick) add(side.cuda_arch);
  }
  return needs;
}

std::vector<std::string> Target::needs_of(BackendKind backend, const SideSource& yardstick) const {
  std::vector<std::string> needs;
  if (const BackendFacts* facts = declared(backend)) {
    for (const Yardstick& one : facts->yardsticks) {
      if (one.name == yardstick.name) needs = one.needs;
    }
  }
  if (!yardstick.cuda_arch.empty()) needs.push_back(yardstick.cuda_arch);
  return needs;
}

Target Target::without(BackendKind backend, const std::vector<std::string>& yardsticks) const {
  Target rest = *this;
  auto& sides = backend == BackendKind::cpu    ? rest.source.cpu
                : backend == BackendKind::cuda ? rest.source.cuda
                                               : rest.source.ranks;
  std::erase_if(sides, [&](const SideSource& side) {
    return side.role == SideRole::yardstick && std::ranges::count(yardsticks, side.name) > 0;
  });
  return rest;
}

std::vector<SidePair> Target::comparisons(BackendKind backend) const {
  const std::vector<SideSource>& all = sides(backend);
  std::vector<SidePair> comparisons;
  std::size_t last = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].role == SideRole::yardstick) {
      comparisons.push_back({i, last, SidePair::Kind::yardstick});
      continue;
    }
    if (all[i].role == SideRole::optimized) {
      comparisons.push_back({i - 1, i, SidePair::Kind::pair});
      last = i;
      continue;
    }
    comparisons.push_back({i - 1, i, SidePair::Kind::step});
    if (i > 1) comparisons.push_back({0, i, SidePair::Kind::total});
    last = i;
  }
  return comparisons;
}

SidePair Target::headline(BackendKind backend) const {
  const std::vector<SidePair> all = comparisons(backend);
  check(!all.empty(), id() + " has nothing to compare");
  SidePair best = all.front();
  for (const SidePair& one : all) {
    if (one.kind == SidePair::Kind::total) best = one;
  }
  return best;
}

Witness Target::witness(BackendKind backend, const SidePair& pair_of) const {
  const BackendFacts& declared = facts(backend);
  if (pair_of.kind == SidePair::Kind::pair) return declared.witness;
  if (pair_of.kind == SidePair::Kind::step) {
    const std::string& name = sides(backend)[pair_of.to].name;
    for (const Rung& rung : declared.rungs) {
      if (rung.name == name) return rung.witness;
    }
  }
  return Witness::none("not a step of its own");
}

}  // namespace gauntlet::lab::inline targets
