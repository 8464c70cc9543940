#include "lab/author/catalog.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "core/text.h"
#include "lab/run/capability.h"

namespace gauntlet::lab::inline author {
namespace {

// What each suite holds, as patterns over ids. The quick suite is one memory, one compute and one
// latency story.
const std::map<std::string, std::vector<std::string>>& suites() {
  static const std::map<std::string, std::vector<std::string>> kSuites = {
      {"quick",
       {"ch01:microbatch_goodput", "ch06:parallel_add", "ch07:coalesced_copy",
        "ch07:transpose_padded", "ch07:tiled_matmul", "ch08:loop_unrolling", "ch08:predication"}},
      {"act1", {"ch01:*", "ch02:*", "ch03:*", "ch04:*", "ch05:*"}},
      {"act2", {"ch06:*", "ch07:*", "ch08:*", "ch09:*", "ch10:*"}},
      {"act3", {"ch11:*", "ch12:*", "ch13:*", "ch14:*"}},
      {"act4", {"ch15:*", "ch16:*", "ch17:*", "ch18:*", "ch19:*", "ch20:*"}},
      {"all", {"*"}},
  };
  return kSuites;
}

bool matches(const Target& target, const std::string& pattern) {
  return target.source.chapter == pattern || fnmatch(pattern.c_str(), target.id().c_str(), 0) == 0;
}

std::string chapter_list(const std::vector<Target>& targets) {
  std::set<std::string> chapters;
  for (const Target& target : targets) chapters.insert(target.source.chapter);
  return fmt::format("{}", fmt::join(chapters, ", "));
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
  const auto suite = suites().find(name);
  if (suite == suites().end()) {
    std::vector<std::string> names;
    for (const auto& [key, patterns] : suites()) names.push_back(key);
    const std::string near = nearest(name, names);
    return Error{fmt::format("there is no suite '{}'{}; the suites are {}", name,
                             near.empty() ? "" : fmt::format(", did you mean '{}'?", near),
                             fmt::join(names, ", ")),
                 ErrorKind::wrong_use};
  }
  std::vector<const Target*> result;
  for (const Target& target : targets_) {
    if (std::ranges::any_of(suite->second, [&](const auto& p) { return matches(target, p); })) {
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
    for (BackendKind backend : {BackendKind::cpu, BackendKind::cuda}) {
      if (!target.has(backend)) continue;
      const auto& facts = backend == BackendKind::cpu ? pair.cpu : pair.cuda;
      if (!facts) {
        complain(target,
                 fmt::format("has {} sides but declares no claim for them", name_of(backend)));
        continue;
      }
      if (facts->claim.empty()) complain(target, "the claim is empty");
      if (!facts->cost) complain(target, "there is no cost");
      if (facts->witness.meaning.empty()) complain(target, "the witness has no meaning");
    }
    for (const std::string& need : pair.needs) {
      if (!known_capability(need)) {
        complain(target, fmt::format("needs '{}', which the lab cannot check", need));
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

}  // namespace gauntlet::lab::inline author
