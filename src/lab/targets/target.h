// Target: a registered pair with its type erased, as the lab runs it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "lab/author/pair.h"

namespace gauntlet::lab::inline targets {

using CpuFactory = std::function<Side(const void* params, const Cpu&)>;
using CudaFactory = std::function<Side(const void* params, const Cuda&)>;
using RanksFactory = std::function<Side(const void* params, const Ranks&)>;

enum class SideRole { baseline, optimized, rung, yardstick };
constexpr const char* name_of(SideRole role) {
  switch (role) {
    case SideRole::baseline:
      return "baseline";
    case SideRole::optimized:
      return "optimized";
    case SideRole::rung:
      return "rung";
    case SideRole::yardstick:
      return "yardstick";
  }
  return "?";
}

/// A side as the build found it. Without a factory where it could not be compiled (no toolkit).
struct SideSource {
  std::string name;  // "baseline", "optimized", a rung's or a yardstick's name
  SideRole role = SideRole::baseline;
  CpuFactory cpu = {};
  CudaFactory cuda = {};
  RanksFactory ranks = {};
  std::string cuda_arch = {};  // "sm_90a" when written for that GPU alone
};

struct TargetSource {
  std::string chapter;
  std::string name;
  std::vector<SideSource> cpu = {};  // in order: baseline first, yardstick last
  std::vector<SideSource> ranks = {};
  std::vector<SideSource> cuda = {};
};

/// Two sides by their index, and why they are compared.
struct SidePair {
  std::size_t from = 0;
  std::size_t to = 0;
  enum class Kind { pair, step, total, yardstick } kind = Kind::pair;
};
const char* name_of(SidePair::Kind kind);

struct Target {
  TargetSource source;
  Pair<std::shared_ptr<const void>> pair;  // bind returns the erased parameters

  /// "ch07:coalesced_copy"
  std::string id() const { return source.chapter + ":" + source.name; }
  const std::vector<SideSource>& sides(BackendKind backend) const;
  /// What the pair declares of a backend; null where it declares nothing.
  const BackendFacts* declared(BackendKind backend) const;
  bool has(BackendKind backend) const { return !sides(backend).empty(); }
  const BackendFacts& facts(BackendKind backend) const;
  /// The pair's needs, the backend's, and on a GPU the architectures of its sources. Yardsticks
  /// have needs of their own.
  std::vector<std::string> needs(BackendKind backend) const;
  std::vector<std::string> needs_of(BackendKind backend, const SideSource& yardstick) const;
  /// The same target with only those yardsticks of a backend that are not named.
  Target without(BackendKind backend, const std::vector<std::string>& yardsticks) const;

  /// What is compared with what: a pair's two sides; each rung with the one before, and the rungs
  /// from the third on with the first; the optimized side or last rung with each yardstick.
  std::vector<SidePair> comparisons(BackendKind backend) const;
  /// The one that decides the status: the pair's, or the last rung against the first.
  SidePair headline(BackendKind backend) const;
  /// What must move between the two sides of a pair or step; none of the other kinds.
  Witness witness(BackendKind backend, const SidePair& sides) const;
};

template <class Params>
SideSource cpu_side(const std::string& name, SideRole role,
                    Side (*factory)(const Params&, const Cpu&)) {
  return {.name = name, .role = role, .cpu = [factory](const void* p, const Cpu& cpu) {
            return factory(*static_cast<const Params*>(p), cpu);
          }};
}

template <class Params>
SideSource cuda_side(const std::string& name, SideRole role, const std::string& arch,
                     Side (*factory)(const Params&, const Cuda&)) {
  return {
      .name = name,
      .role = role,
      .cuda = [factory](const void* p,
                        const Cuda& cuda) { return factory(*static_cast<const Params*>(p), cuda); },
      .cuda_arch = arch};
}

template <class Params>
SideSource ranks_side(const std::string& name, SideRole role,
                      Side (*factory)(const Params&, const Ranks&)) {
  return {.name = name, .role = role, .ranks = [factory](const void* p, const Ranks& ranks) {
            return factory(*static_cast<const Params*>(p), ranks);
          }};
}

/// A CUDA side in a build without a toolkit.
inline SideSource uncompiled_side(const std::string& name, SideRole role, const std::string& arch) {
  return {.name = name, .role = role, .cuda_arch = arch};
}

template <class Params>
Target make_target(TargetSource source, Pair<Params> typed) {
  using Erased = std::shared_ptr<const void>;
  Pair<Erased> pair{
      .title = std::move(typed.title),
      .technique = std::move(typed.technique),
      .goal = typed.goal,
      .goal_metric = std::move(typed.goal_metric),
      .bar = typed.bar,
      .needs = std::move(typed.needs),
      .tags = std::move(typed.tags),
      .knobs = std::move(typed.knobs),
      .cpu = std::move(typed.cpu),
      .cuda = std::move(typed.cuda),
      .ranks = std::move(typed.ranks),
      .metrics = std::move(typed.metrics),
      .cold = typed.cold,
      .bind = [bind = std::move(typed.bind)](Binder& binder) -> Erased {
        return std::make_shared<const Params>(bind(binder));
      },
      .reference =
          [reference = std::move(typed.reference)](const Erased& params, Reference& out) {
            reference(*static_cast<const Params*>(params.get()), out);
          },
      .managed_pages = typed.managed_pages,
  };
  return {std::move(source), std::move(pair)};
}

}  // namespace gauntlet::lab::inline targets
