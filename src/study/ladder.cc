#include "study/ladder.h"

#include <algorithm>

#include "core/check.h"

namespace gauntlet::study {
namespace {

using engine::ExpertWeightsKind;
using engine::KvType;

std::vector<Layer> layer_names() {
  return {
      {"baseline", "op by op, naive attention, dequantised weights, static batch"},
      {"basics", "what costs nothing but asking"},
      {"memory", "how weights and caches are read"},
      {"pipelining", "operations that meet in registers instead of memory"},
      {"concurrency", "work that overlaps"},
      {"precision", "fewer bits"},
      {"serving", "many requests at once"},
  };
}

/// Static batches whose prompts go first, and nothing kept of the requests before.
engine::SchedulerConfig plain_serving() {
  return {.batching = engine::Batching::fixed,
          .chunking = engine::Chunking::off,
          .prefix_caching = engine::PrefixCaching::off};
}

std::vector<Option> serving_options() {
  return {
      {.id = "continuous_batching",
       .title = "requests join and leave at every step",
       .layer = 6,
       .stage = Stage::serving,
       .scope = Scope::scheduler,
       .targets = {"ch01:microbatch_goodput"},
       .switch_on = [](Stack& s) { s.scheduler.batching = engine::Batching::continuous; }},
      {.id = "prefix_cache",
       .title = "pages of prompts that begin alike are shared",
       .layer = 6,
       .stage = Stage::serving,
       .scope = Scope::scheduler,
       .targets = {"ch07:l2_persistence"},
       .switch_on = [](Stack& s) { s.scheduler.prefix_caching = engine::PrefixCaching::on; }},
      {.id = "chunked_prefill",
       .title = "prompts take what decoding leaves of a step",
       .layer = 6,
       .stage = Stage::serving,
       .scope = Scope::scheduler,
       .targets = {},
       .switch_on = [](Stack& s) { s.scheduler.chunking = engine::Chunking::on; }},
  };
}

Ladder with_serving(Ladder ladder) {
  for (Option& option : serving_options()) ladder.options.push_back(std::move(option));
  return ladder;
}

Ladder cpu_ladder() {
  Ladder ladder;
  ladder.backend = engine::Backend::cpu;
  ladder.least_margin = 0.02;
  ladder.layers = layer_names();
  ladder.baseline.engine = {.simd = kernels::cpu::SimdLevel::portable,
                            .threads = 1,
                            .activations = engine::Activations::f32,
                            .fusion = engine::Fusion::op_by_op,
                            .stages = engine::Stages::apart,
                            .attention = engine::AttentionKind::naive,
                            .experts = ExpertWeightsKind::dequantised,
                            .head = engine::HeadKind::full,
                            .kv = KvType::f32};
  ladder.options = {
      {.id = "threads",
       .title = "one pinned thread per CPU",
       .layer = 1,
       .targets = {"ch06:parallel_add"},
       .switch_on = [](Stack& s) { s.engine.threads = 0; }},
      {.id = "simd",
       .title = "the widest vector instructions here",
       .layer = 2,
       .targets = {"ch07:vectorized_copy", "ch08:loop_unrolling"},
       .switch_on = [](Stack& s) { s.engine.simd.reset(); }},
      {.id = "screened_head",
       .title = "bounds single out the few logits that must be exact",
       .layer = 2,
       .targets = {},
       .switch_on = [](Stack& s) { s.engine.head = engine::HeadKind::screened; }},
      {.id = "flash_attention",
       .title = "attention in one blocked pass",
       .layer = 3,
       .targets = {"ch07:tiled_matmul"},
       .switch_on = [](Stack& s) { s.engine.attention = engine::AttentionKind::flash; }},
      {.id = "fused_layers",
       .title = "operations fused, few barriers",
       .layer = 3,
       .targets = {"ch01:sync_every_call"},
       .switch_on = [](Stack& s) { s.engine.fusion = engine::Fusion::fused; }},
      {.id = "overlapped_stages",
       .title = "threads go on as soon as what they need is there",
       .layer = 4,
       .targets = {"ch01:sync_every_call"},
       .switch_on = [](Stack& s) { s.engine.stages = engine::Stages::overlapped; }},
      {.id = "mxfp4_experts",
       .title = "4-bit experts multiplied as they are",
       .layer = 5,
       .targets = {},
       .switch_on = [](Stack& s) { s.engine.experts = ExpertWeightsKind::mxfp4; }},
      {.id = "int8_activations",
       .title = "activations rounded to 8 bits per 32 values",
       .layer = 5,
       .perplexity_percent = 0.5,
       .targets = {"ch01:tf32_matmul"},
       .switch_on = [](Stack& s) { s.engine.activations = engine::Activations::automatic; }},
      {.id = "bf16_kv",
       .title = "keys and values in 16 bits",
       .layer = 5,
       .perplexity_percent = 0.5,
       .targets = {},
       .switch_on = [](Stack& s) { s.engine.kv = KvType::bf16; }},
  };
  return with_serving(std::move(ladder));
}

/// What a competent first port does: products on CUDA cores, weights as they lie in the file, a
/// kernel and a launch per operation, expanded experts, memory as malloc gives it.
engine::EngineOptions first_port() {
  return {.fusion = engine::Fusion::op_by_op,
          .attention = engine::AttentionKind::naive,
          .experts = ExpertWeightsKind::dequantised,
          .kv = KvType::bf16,
          .cuda = {.products = engine::ProductUnit::cuda_cores,
                   .weight_layout = engine::WeightLayout::rows,
                   .pipelines = engine::Pipelines::plain,
                   .graphs = engine::Graphs::off,
                   .dependent_launch = engine::DependentLaunch::off,
                   .kv_layout = engine::KvLayout::contiguous,
                   .host_memory = engine::HostMemory::pageable}};
}

Ladder cuda_ladder() {
  Ladder ladder;
  ladder.backend = engine::Backend::cuda;
  ladder.least_margin = 0.1;
  ladder.layers = layer_names();
  ladder.baseline.engine = first_port();
  ladder.options = {
      {.id = "tensor_cores",
       .title = "products on tensor cores",
       .layer = 1,
       .targets = {"ch01:tf32_matmul"},
       .switch_on = [](Stack& s) { s.engine.cuda.products = engine::ProductUnit::tensor_cores; }},
      {.id = "pinned_memory",
       .title = "a step's inputs and tokens in pinned memory",
       .layer = 1,
       .targets = {"ch06:managed_prefetch"},
       .switch_on = [](Stack& s) { s.engine.cuda.host_memory = engine::HostMemory::pinned; }},
      {.id = "weight_layout",
       .title = "weights in the order in which tensor cores take them",
       .layer = 2,
       .targets = {"ch07:coalesced_copy", "ch07:vectorized_copy"},
       .switch_on =
           [](Stack& s) { s.engine.cuda.weight_layout = engine::WeightLayout::fragments; }},
      {.id = "fused_layers",
       .title = "operations fused into the products beside them",
       .layer = 3,
       .targets = {"ch06:shared_stencil"},
       .switch_on = [](Stack& s) { s.engine.fusion = engine::Fusion::fused; }},
      {.id = "flash_attention",
       .title = "attention in one blocked pass",
       .layer = 3,
       .targets = {"ch07:tiled_matmul"},
       .switch_on = [](Stack& s) { s.engine.attention = engine::AttentionKind::flash; }},
      {.id = "bulk_pipelines",
       .title = "weights of many tokens by bulk copies from a warp of their own",
       .layer = 3,
       .targets = {"ch07:tma_copy", "ch07:tma_tile_2d", "ch07:async_prefetch"},
       .switch_on = [](Stack& s) { s.engine.cuda.pipelines = engine::Pipelines::bulk; }},
      {.id = "graphs",
       .title = "decode steps captured once and replayed",
       .layer = 4,
       .targets = {"ch01:sync_every_call"},
       .switch_on = [](Stack& s) { s.engine.cuda.graphs = engine::Graphs::on; }},
      {.id = "dependent_launch",
       .title = "kernels start while the one in front ends",
       .layer = 4,
       .targets = {},
       .switch_on = [](Stack& s) { s.engine.cuda.dependent_launch = engine::DependentLaunch::on; }},
      {.id = "mxfp4_experts",
       .title = "4-bit experts multiplied as they are",
       .layer = 5,
       .targets = {},
       .switch_on = [](Stack& s) { s.engine.experts = ExpertWeightsKind::mxfp4; }},
      {.id = "fp8_kv",
       .title = "keys and values in 8 bits",
       .layer = 5,
       .perplexity_percent = 2,
       .targets = {},
       .switch_on = [](Stack& s) { s.engine.kv = KvType::fp8; }},
      {.id = "paged_kv",
       .title = "pages handed out as sequences grow",
       .layer = 6,
       .stage = Stage::serving,
       .targets = {},
       .switch_on = [](Stack& s) { s.engine.cuda.kv_layout = engine::KvLayout::paged; }},
  };
  return with_serving(std::move(ladder));
}

}  // namespace

const char* name_of(Stage stage) { return stage == Stage::engine ? "engine" : "serving"; }

const char* backend_name(engine::Backend backend) {
  return backend == engine::Backend::cuda ? "cuda" : "cpu";
}

Ladder ladder_for(engine::Backend backend) {
  Ladder ladder = backend == engine::Backend::cpu ? cpu_ladder() : cuda_ladder();
  ladder.baseline.scheduler = plain_serving();
  return ladder;
}

const Option& Ladder::option(const std::string& id) const {
  const auto found = std::ranges::find(options, id, &Option::id);
  check(found != options.end(), "no such option: " + id);
  return *found;
}

std::vector<const Option*> Ladder::options_of(int layer) const {
  std::vector<const Option*> found;
  for (const Option& option : options) {
    if (option.layer == layer) found.push_back(&option);
  }
  return found;
}

OptionIds Ladder::all() const { return up_to(static_cast<int>(layers.size()) - 1); }

OptionIds Ladder::up_to(int layer) const {
  OptionIds ids;
  for (const Option& option : options) {
    if (option.layer <= layer) ids.insert(option.id);
  }
  return ids;
}

Stack Ladder::stack(const OptionIds& on) const {
  Stack made = baseline;
  for (const Option& option : options) {
    if (on.contains(option.id)) option.switch_on(made);
  }
  made.on = on;
  return made;
}

Stage Ladder::stage_of(int layer) const {
  const auto own = options_of(layer);
  return own.empty() ? Stage::engine : own.front()->stage;
}

double Ladder::allowed_percent(int layer) const {
  double percent = 0;
  for (const Option* option : options_of(layer)) percent += option->perplexity_percent;
  return percent;
}

OptionIds executor_options(const Ladder& ladder, const OptionIds& on) {
  OptionIds ids;
  for (const std::string& id : on) {
    if (ladder.option(id).scope == Scope::executor) ids.insert(id);
  }
  return ids;
}

}  // namespace gauntlet::study
