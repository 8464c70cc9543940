// Target: a registered pair with its type erased, as the lab runs it.
#pragma once
#include <array>
#include <memory>
#include <string>

#include "lab/pair.h"

namespace gauntlet::lab {

/// Index of a side everywhere in the lab.
enum SideIndex : int { kBaseline = 0, kOptimized = 1 };
constexpr const char* side_name(int side) { return side == kBaseline ? "baseline" : "optimized"; }

using CpuFactory = std::function<Side(const void* params, const Cpu&)>;
using CudaFactory = std::function<Side(const void* params, const Cuda&)>;

struct TargetSource {
  std::string chapter;
  std::string name;
  std::optional<std::array<CpuFactory, 2>> cpu = {};
  std::optional<std::array<CudaFactory, 2>> cuda = {};
  bool has_cuda_source = false;  // true also where it could not be compiled (no toolkit)
  std::string cuda_arch = {};    // "sm_90a" when a side is written for that GPU alone
};

struct Target {
  TargetSource source;
  Pair<std::shared_ptr<const void>> pair;  // bind returns the erased parameters

  /// "ch07:coalesced_copy"
  std::string id() const { return source.chapter + ":" + source.name; }
  bool has(BackendKind backend) const {
    return backend == BackendKind::cpu ? source.cpu.has_value() : source.has_cuda_source;
  }
  const BackendFacts& facts(BackendKind backend) const;
  /// The pair's needs and, on a GPU, the architecture of its sources.
  std::vector<std::string> needs(BackendKind backend) const;
};

template <class Params>
std::array<CpuFactory, 2> cpu_sides(Side (*baseline)(const Params&, const Cpu&),
                                    Side (*optimized)(const Params&, const Cpu&)) {
  const auto erase = [](auto* factory) -> CpuFactory {
    return [factory](const void* p, const Cpu& cpu) {
      return factory(*static_cast<const Params*>(p), cpu);
    };
  };
  return {erase(baseline), erase(optimized)};
}

template <class Params>
std::array<CudaFactory, 2> cuda_sides(Side (*baseline)(const Params&, const Cuda&),
                                      Side (*optimized)(const Params&, const Cuda&)) {
  const auto erase = [](auto* factory) -> CudaFactory {
    return [factory](const void* p, const Cuda& cuda) {
      return factory(*static_cast<const Params*>(p), cuda);
    };
  };
  return {erase(baseline), erase(optimized)};
}

template <class Params>
Target make_target(TargetSource source, Pair<Params> typed) {
  using Erased = std::shared_ptr<const void>;
  Pair<Erased> pair{
      .title = std::move(typed.title),
      .technique = std::move(typed.technique),
      .kind = typed.kind,
      .goal = typed.goal,
      .goal_metric = std::move(typed.goal_metric),
      .bar = typed.bar,
      .needs = std::move(typed.needs),
      .tags = std::move(typed.tags),
      .knobs = std::move(typed.knobs),
      .cpu = std::move(typed.cpu),
      .cuda = std::move(typed.cuda),
      .metrics = std::move(typed.metrics),
      .cold = typed.cold,
      .bind = [bind = std::move(typed.bind)](Binder& binder) -> Erased {
        return std::make_shared<const Params>(bind(binder));
      },
      .reference =
          [reference = std::move(typed.reference)](const Erased& params, Reference& out) {
            reference(*static_cast<const Params*>(params.get()), out);
          },
  };
  if (typed.reset) {
    pair.reset = [reset = std::move(typed.reset)](const Erased& params) {
      reset(*static_cast<const Params*>(params.get()));
    };
  }
  return {std::move(source), std::move(pair)};
}

}  // namespace gauntlet::lab
