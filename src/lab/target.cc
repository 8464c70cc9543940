#include "lab/target.h"

#include <algorithm>

#include "core/check.h"

namespace gauntlet::lab {

const BackendFacts& Target::facts(BackendKind backend) const {
  const auto& facts = backend == BackendKind::cpu ? pair.cpu : pair.cuda;
  check(facts.has_value(), id() + " declares nothing for backend " + name_of(backend));
  return *facts;
}

std::vector<std::string> Target::needs(BackendKind backend) const {
  if (backend == BackendKind::cpu) return {};
  std::vector<std::string> needs = pair.needs;
  if (!source.cuda_arch.empty() && std::ranges::find(needs, source.cuda_arch) == needs.end()) {
    needs.push_back(source.cuda_arch);
  }
  return needs;
}

}  // namespace gauntlet::lab
