// The catalogue of planted lies, for the same commands as the real one.
#include "lab/targets/catalog.h"

#include <map>

#include "tests/lies/lie.h"
#include "tests/lies/scale_pair.h"

namespace gauntlet::lies {
namespace {

using lab::SideRole;
using Level = lab::Cost::Level;

template <class P>
void add(std::map<std::string, lab::TargetSource>& targets, const std::vector<CpuLie<P>>& lies,
         CpuFactory<P> slow) {
  for (const CpuLie<P>& lie : lies) {
    targets[lie.name].cpu = {
        lab::cpu_side<P>("baseline", SideRole::baseline, lie.baseline ? lie.baseline : slow),
        lab::cpu_side<P>("optimized", SideRole::optimized, lie.optimized)};
  }
}

template <class P>
void add(std::map<std::string, lab::TargetSource>& targets, const std::vector<CudaLie<P>>& lies,
         CudaFactory<P> slow) {
  for (const CudaLie<P>& lie : lies) {
    targets[lie.name].cuda = {
        lab::cuda_side<P>("baseline", SideRole::baseline, "", lie.baseline ? lie.baseline : slow),
        lab::cuda_side<P>("optimized", SideRole::optimized, "", lie.optimized)};
  }
}

Pretence pretence_of(const std::string& name) {
  if (name == "witness_still") {
    return {.witness = lab::Witness::fact("passes", lab::Witness::Moves::falls, 2,
                                          "passes over the data")};
  }
  if (name == "witness_missing") {
    return {.witness = lab::Witness::fact("nowhere", lab::Witness::Moves::falls, 2,
                                          "a fact that no side reports")};
  }
  if (name.starts_with("states_count")) {
    return {.witness = lab::Witness::outcome("busy_cpus", lab::Witness::Moves::rises, 1.2,
                                             "threads at work at a time")};
  }
  if (name == "inflated_cost") return {.declared = 400};
  // As often as `many_passes` goes over 16 KiB, and a hundred times as often.
  constexpr std::int64_t kInFirstCache = 2048;
  if (name == "many_passes") {
    return {.declared = kManyPasses, .cpu_count = kInFirstCache, .level = Level::l1_cache};
  }
  if (name == "inflated_passes") {
    return {.declared = 100 * kManyPasses, .cpu_count = kInFirstCache, .level = Level::l1_cache};
  }
  if (name == "computes_while_copied") return {.cpu_count = 1 << 22};
  if (name.ends_with("dear_checks")) return {.check = std::chrono::milliseconds(40)};
  if (name == "idle_traffic") return {.read = 0.125};
  return {};
}

DType claimed_by(const std::string& name) {
  return name.starts_with("tf32") ? DType::tf32 : DType::f32;
}

}  // namespace
}  // namespace gauntlet::lies

namespace gauntlet::lab::inline targets {

Catalog load_catalog() {
  using namespace lies;
  std::map<std::string, TargetSource> scaling, products;
  for (const auto& some : {cpu_output_lies(), cpu_process_lies(), cpu_reuse_lies(),
                           cpu_hidden_lies(), cpu_late_lies(), cpu_state_lies()}) {
    add<Params>(scaling, some, cpu_slow);
  }
  for (const auto& some :
       {cuda_output_lies(), cuda_reuse_lies(), cuda_hidden_lies(), cuda_late_lies()}) {
    add<Params>(scaling, some, cuda_slow);
  }
  add<ProductParams>(products, cpu_product_lies(), cpu_product);
  add<ProductParams>(products, cuda_product_lies(), cuda_product);
  std::vector<Target> all;
  for (auto& [name, source] : scaling) {
    source.chapter = "lies";
    source.name = name;
    all.push_back(make_target<Params>(source, scale_pair(pretence_of(name))));
  }
  for (auto& [name, source] : products) {
    source.chapter = "lies";
    source.name = name;
    all.push_back(make_target<ProductParams>(source, product_pair(claimed_by(name))));
  }
  return Catalog(std::move(all), {{"lies", "lying"}});
}

}  // namespace gauntlet::lab::inline targets
