// Catalog: all targets of a binary, found by name, chapter, glob or suite.
#pragma once
#include <string>
#include <vector>

#include "core/expected.h"
#include "lab/targets/target.h"

namespace gauntlet::lab::inline targets {

/// One line of a chapter's closed list of techniques.
struct ChapterTechnique {
  std::string chapter;
  std::string technique;
};

class Catalog {
 public:
  Catalog(std::vector<Target> targets, std::vector<ChapterTechnique> techniques);

  const std::vector<Target>& targets() const { return targets_; }
  const std::vector<ChapterTechnique>& techniques() const { return techniques_; }
  const Target* find(const std::string& id) const;

  /// Targets that match any pattern: an id, a chapter, or a glob over ids ("ch07", "ch0*:*copy"). A
  /// pattern that matches nothing is an error that names the nearest id.
  Expected<std::vector<const Target*>> select(const std::vector<std::string>& patterns) const;
  Expected<std::vector<const Target*>> suite(const std::string& name) const;

  /// What is wrong with the declarations (technique not in its chapter's list, missing claims,
  /// ...), a line each.
  std::vector<std::string> problems() const;

 private:
  std::vector<Target> targets_;
  std::vector<ChapterTechnique> techniques_;
};

/// Defined by the generated index of the catalogue this binary is linked with.
Catalog load_catalog();

}  // namespace gauntlet::lab::inline targets
