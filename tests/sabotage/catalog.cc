// The catalogue with every side after the first of each target spoiled, for the same commands.
#include "lab/targets/catalog.h"

#include "tests/sabotage/spoil.h"

namespace gauntlet::lab::inline targets {

/// The real one: the build compiles its index under this name.
Catalog load_sound_catalog();

Catalog load_catalog() {
  const Catalog sound = load_sound_catalog();
  std::vector<Target> all;
  for (const Target& target : sound.targets()) {
    for (const std::string& side : sabotage::spoilable_sides(target)) {
      for (const sabotage::How how : sabotage::kAllHow) {
        all.push_back(sabotage::spoil(target, side, how));
      }
    }
  }
  return Catalog(std::move(all), sound.techniques());
}

}  // namespace gauntlet::lab::inline targets
