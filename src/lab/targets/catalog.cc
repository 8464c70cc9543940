#include "lab/targets/catalog.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "core/text/text.h"
#include "lab/targets/needs.h"
#include "lab/targets/suites.h"

namespace gauntlet::lab::inline targets {
namespace {

bool matches(const Target& target, const std::string& pattern) {
  return target.source.chapter == pattern || fnmatch(pattern.c_str(), target.id().c_str(), 0) == 0;
}

std::string chapter_list(const std::vector<Target>& targets) {
  std::set<std::string> chapters;
  for (const Target& target : targets) chapters.insert(target.source.chapter);
  return fmt::format("{}", fmt::join(chapters, ", "));
}

/// What is wrong with what a lab says of its rungs: each from the second on has a claim and a
/// witness, and nothing is said of rungs that are not there.
std::vector<std::string> rung_problems(const std::vector<SideSource>& sides,
                                       const std::vector<Rung>& declared) {
  std::vector<std::string> problems;
  std::set<std::string> names;
  for (std::size_t i = 1; i < sides.size(); ++i) {
    if (sides[i].role != SideRole::rung) continue;
    names.insert(sides[i].name);
    const auto rung =
        std::ranges::find_if(declared, [&](const Rung& one) { return one.name == sides[i].name; });
    if (rung == declared.end() || rung->claim.empty()) {
      problems.push_back(fmt::format("rung '{}' has no claim", sides[i].name));
    } else if (rung->witness.meaning.empty()) {
      problems.push_back(fmt::format("the witness of rung '{}' has no meaning", sides[i].name));
    }
  }
  for (const Rung& rung : declared) {
    if (names.contains(rung.name)) continue;
    problems.push_back(fmt::format("there is no rung '{}' after the first", rung.name));
  }
  return problems;
}

/// With those of its yardsticks.
std::set<std::string> all_needs_of(const Target& target, BackendKind backend) {
  const std::vector<std::string> own = target.needs(backend);
  std::set<std::string> needs(own.begin(), own.end());
  for (const SideSource& side : target.sides(backend)) {
    if (side.role != SideRole::yardstick) continue;
    const std::vector<std::string> more = target.needs_of(backend, side);
    needs.insert(more.begin(), more.end());
  }
  return needs;
}

/// Nothing is said of yardsticks that are not there.
std::vector<std::string> yardstick_problems(const Target& target, BackendKind backend) {
  std::vector<std::string> problems;
  const BackendFacts* facts = target.declared(backend);
  if (facts == nullptr) return problems;
  for (const Yardstick& yardstick : facts->yardsticks) {
    const bool there = std::ranges::any_of(target.sides(backend), [&](const SideSource& side) {
      return side.role == SideRole::yardstick && side.name == yardstick.name;
    });
    if (!there) problems.push_back(fmt::format("there is no yardstick '{}'", yardstick.name));
  }
  return problems;
}

}  // namespace

Catalog::Catalog(std::vector<Target> targets, std::vector<ChapterTechnique> techniques)
    : targets_(std::move(targets)), techniques_(std::move(techniques)) {}

const Target* Catalog::find(const std::string& id) const {
  const auto found = std::ranges::find_if(targets_, [&](const Target& t) { return t.id() == id; });
  return found == targets_.end() ? nullptr : &*found;
}

Expected<std::vector<const Target*>> Catalog::select(
    const std::vector<std::string>& patterns) const {
  std::vector<bool> chosen(targets_.size(), false);
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      if (!matches(targets_[i], pattern)) continue;
      chosen[i] = true;
      any = true;
    }
    if (any) continue;
    std::vector<std::string> names;
    for (const Target& target : targets_) {
      names.push_back(target.id());
      names.push_back(target.source.name);
      names.push_back(target.source.chapter);
    }
    std::string near = nearest(pattern, names);
    for (const Target& target : targets_) {
      if (target.source.name == near) near = target.id();
    }
    return Error{near.empty()
                     ? fmt::format("no target matches '{}'; the chapters are {} ('gauntlet list' "
                                   "shows all targets)",
                                   pattern, chapter_list(targets_))
                     : fmt::format("no target matches '{}', did you mean '{}'? ('gauntlet list' "
                                   "shows all targets)",
                                   pattern, near),
                 ErrorKind::wrong_use};
  }
  std::vector<const Target*> result;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (chosen[i]) result.push_back(&targets_[i]);
  }
  return result;
}

Expected<std::vector<const Target*>> Catalog::suite(const std::string& name) const {
  const auto suites = load_suites();
  if (!suites) return suites.error();
  const auto suite = std::ranges::find_if(*suites, [&](const Suite& s) { return s.name == name; });
  if (suite == suites->end()) {
    std::vector<std::string> names;
    for (const Suite& known : *suites) names.push_back(known.name);
    const std::string near = nearest(name, names);
    return Error{fmt::format("there is no suite '{}'{}; the suites are {}", name,
                             near.empty() ? "" : fmt::format(", did you mean '{}'?", near),
                             suite_names(*suites)),
                 ErrorKind::wrong_use};
  }
  std::vector<const Target*> result;
  for (const Target& target : targets_) {
    if (std::ranges::any_of(suite->patterns, [&](const auto& p) { return matches(target, p); })) {
      result.push_back(&target);
    }
  }
  if (result.empty()) {
    return Error{fmt::format("suite '{}' has no targets in this binary yet", name),
                 ErrorKind::wrong_use};
  }
  return result;
}

std::vector<std::string> Catalog::problems() const {
  std::vector<std::string> problems;
  const auto complain = [&](const Target& target, const std::string& what) {
    problems.push_back(target.id() + ": " + what);
  };
  for (const Target& target : targets_) {
    const auto& pair = target.pair;
    const bool listed = std::ranges::any_of(techniques_, [&](const ChapterTechnique& t) {
      return t.chapter == target.source.chapter && t.technique == pair.technique;
    });
    if (!listed) {
      complain(target, fmt::format("technique '{}' is not in the list of its chapter "
                                   "(catalog/{}/techniques)",
                                   pair.technique, target.source.chapter));
    }
    for (const BackendKind backend : kBackends) {
      if (!target.has(backend)) continue;
      const BackendFacts* facts = target.declared(backend);
      if (facts == nullptr) {
        complain(target,
                 fmt::format("has {} sides but declares no claim for them", name_of(backend)));
        continue;
      }
      if (facts->claim.empty()) complain(target, "the claim is empty");
      if (!facts->cost) complain(target, "there is no cost");
      const std::vector<SideSource>& sides = target.sides(backend);
      if (sides.front().role == SideRole::rung) {
        for (const std::string& what : rung_problems(sides, facts->rungs)) complain(target, what);
      } else if (facts->witness.meaning.empty()) {
        complain(target, "the witness has no meaning");
      }
    }
    std::set<std::string> needs;
    for (const BackendKind backend : kBackends) {
      if (!target.has(backend)) continue;
      needs.merge(all_needs_of(target, backend));
      for (const std::string& what : yardstick_problems(target, backend)) complain(target, what);
    }
    for (const std::string& need : needs) {
      if (!is_need(need)) {
        complain(target, fmt::format("needs '{}', which the lab cannot check", need));
      }
    }
    if (target.has(BackendKind::cpu)) {
      for (const std::string& need : all_needs_of(target, BackendKind::cpu)) {
        if (!is_gpu_need(need)) continue;
        complain(target, fmt::format("its CPU sides need '{}', which only a GPU has: say it among "
                                     "the needs of the other backends",
                                     need));
      }
    }
    if (pair.title.empty()) complain(target, "the title is empty");
    if (!pair.bind || !pair.reference) complain(target, "bind and reference are required");
    if (pair.bar < 1.02) complain(target, "the bar is below 1.02");
    if (pair.goal != Goal::speed && std::ranges::none_of(pair.metrics, [&](const Metric& m) {
          return m.name == pair.goal_metric;
        })) {
      complain(target, "the goal is not speed, so goal_metric must name one of the metrics");
    }
  }
  return problems;
}

}  // namespace gauntlet::lab::inline targets
