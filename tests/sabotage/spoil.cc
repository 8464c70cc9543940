#include "tests/sabotage/spoil.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace gauntlet::sabotage {
namespace {

using Erased = std::shared_ptr<const void>;

/// What a target's own bind() returned, and where the outputs are that it asked for.
struct SpoiledParams {
  Erased own;
  std::vector<Extent> second_halves;  // of each output; of one element, all of it
};

const SpoiledParams& spoiled(const void* params) {
  return *static_cast<const SpoiledParams*>(params);
}

/// Hands every buffer on to the lab's binder and remembers the outputs.
class Recorder final : public lab::Binder {
 public:
  Recorder(lab::Binder& lab, std::vector<Extent>& second_halves)
      : Binder(lab.knobs(), lab.rank(), lab.num_ranks()),
        lab_(lab),
        second_halves_(second_halves) {}

 protected:
  void* add(lab::BufferSpec spec) override {
    const bool is_output = spec.role == lab::Role::output;
    const std::size_t element = size_of(spec.type);
    const auto first_kept = static_cast<std::size_t>(spec.count / 2);
    const std::size_t kept = static_cast<std::size_t>(spec.count) - first_kept;
    void* data = (lab_.*&Opened::add)(std::move(spec));
    if (is_output && data != nullptr) {  // the reference has no outputs in memory
      second_halves_.push_back(
          {static_cast<unsigned char*>(data) + first_kept * element, kept * element});
    }
    return data;
  }

 private:
  /// Makes add() of another binder callable.
  struct Opened : Binder {
    using Binder::add;
  };
  lab::Binder& lab_;
  std::vector<Extent>& second_halves_;
};

/// The side loses half of its outputs from its first timed sample on, which it knows because the
/// lab asks for outcomes before one, and at no other time.
void lose_half(lab::Side& side, Keeper keeper) {
  const auto is_timed = std::make_shared<bool>(false);
  side.outcomes = [is_timed, own = std::move(side.outcomes)] {
    *is_timed = true;
    return own ? own() : std::map<std::string, double>();
  };
  side.run = [is_timed, keeper = std::move(keeper), own = std::move(side.run)] {
    if (*is_timed) keeper.keep();
    own();
    if (*is_timed) keeper.restore();
  };
}

Keeper keeper_for(const SpoiledParams& params, const lab::Cuda& cuda) {
  return cuda_keeper(params.second_halves, cuda);
}
template <class Context>
Keeper keeper_for(const SpoiledParams& params, const Context&) {
  return host_keeper(params.second_halves);
}

/// A factory that finds its side's own parameters, and spoils what the side's own factory makes.
template <class Context>
std::function<lab::Side(const void*, const Context&)> wrap(
    std::function<lab::Side(const void*, const Context&)> own, How how) {
  if (!own) return own;  // in a build without a toolkit
  return [own = std::move(own), how](const void* params, const Context& context) {
    lab::Side side = own(spoiled(params).own.get(), context);
    if (how == How::returns_at_once) side.run = [] {};
    if (how == How::loses_half) lose_half(side, keeper_for(spoiled(params), context));
    return side;
  };
}

}  // namespace

Keeper host_keeper(std::vector<Extent> extents) {
  struct Kept {
    std::vector<Extent> extents;
    std::vector<std::vector<unsigned char>> content;
  };
  const auto kept = std::make_shared<Kept>(Kept{std::move(extents), {}});
  kept->content.resize(kept->extents.size());
  return {.keep =
              [kept] {
                for (std::size_t i = 0; i < kept->extents.size(); ++i) {
                  const auto* data = static_cast<const unsigned char*>(kept->extents[i].data);
                  kept->content[i].assign(data, data + kept->extents[i].bytes);
                }
              },
          .restore =
              [kept] {
                for (std::size_t i = 0; i < kept->extents.size(); ++i) {
                  std::memcpy(kept->extents[i].data, kept->content[i].data(),
                              kept->content[i].size());
                }
              }};
}

std::string spoiled_name(const std::string& target, const std::string& side, How how) {
  return target + "." + side + "." + name_of(how);
}

lab::Target spoil(const lab::Target& target, const std::string& side, How how) {
  lab::Target result = target;
  result.source.name = spoiled_name(target.source.name, side, how);
  for (auto* sources : {&result.source.cpu, &result.source.ranks, &result.source.cuda}) {
    for (lab::SideSource& source : *sources) {
      const How of_side = source.name == side ? how : How::honest;
      source.cpu = wrap(std::move(source.cpu), of_side);
      source.ranks = wrap(std::move(source.ranks), of_side);
      source.cuda = wrap(std::move(source.cuda), of_side);
    }
  }
  result.pair.bind = [own = target.pair.bind](lab::Binder& binder) -> Erased {
    const auto params = std::make_shared<SpoiledParams>();
    Recorder recorder(binder, params->second_halves);
    params->own = own(recorder);
    return params;
  };
  result.pair.reference = [own = target.pair.reference](const Erased& params, lab::Reference& out) {
    own(spoiled(params.get()).own, out);
  };
  return result;
}

std::vector<std::string> spoilable_sides(const lab::Target& target) {
  std::vector<std::string> names;
  for (const auto* sources : {&target.source.cpu, &target.source.ranks, &target.source.cuda}) {
    for (std::size_t i = 1; i < sources->size(); ++i) {
      const std::string& name = (*sources)[i].name;
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

}  // namespace gauntlet::sabotage
