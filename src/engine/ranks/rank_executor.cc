#include "engine/ranks/rank_executor.h"

#include <fmt/format.h>

#include "core/check.h"
#include "engine/ranks/step_wire.h"
#include "engine/steps/pooled_executor.h"

namespace gauntlet::engine::inline on_ranks {
namespace {

/// What all ranks must have alike, and rank 0's pool.
struct Setup {
  KvPoolConfig pool;
  std::int64_t max_batch_tokens = 0;
  std::int64_t model_bytes = 0;
  std::int64_t num_layers = 0;
  Mesh mesh;
  RankSums sums = RankSums::reduced;
};

struct Rank {
  std::shared_ptr<GroupParts> parts;
  std::unique_ptr<Runner> runner;
  Setup setup;
};

/// All ranks call it.
Expected<Rank> make_rank(ranks::Group& world, const model::ModelWeights& weights,
                         const RankConfig& config) {
  if (world.size() != config.mesh.ranks()) {
    return Error{fmt::format("the mesh {} has {} ranks, and {} were started", config.mesh.text(),
                             config.mesh.ranks(), world.size()),
                 ErrorKind::wrong_use};
  }
  check(config.cpu.export_layers.empty(), "ranks export no residuals");
  if (const auto fits = check_mesh(weights.config, config.mesh); !fits) return fits.error();
  const auto plan = resolve(config.cpu.options);
  if (!plan) return plan.error();
  const Setup own{.pool = cpu_pool(weights.config, plan->kv, config.cpu),
                  .max_batch_tokens = config.cpu.max_batch_tokens,
                  .model_bytes = weights.file_bytes,
                  .num_layers = weights.config.num_layers,
                  .mesh = config.mesh,
                  .sums = config.sums};
  const auto setup = ranks::agree(world, own);
  if (!setup) return setup.error();
  const bool same = setup->model_bytes == own.model_bytes && setup->num_layers == own.num_layers &&
                    setup->mesh == own.mesh && setup->sums == own.sums &&
                    setup->max_batch_tokens == own.max_batch_tokens;
  const auto all_same = ranks::all_true(world, same);
  if (!all_same) return all_same.error();
  if (!*all_same) {
    return Error{same ? "another rank has another model, mesh, --rank-sums or --chunk than rank 0"
                      : fmt::format("rank {} has another model, mesh, --rank-sums or --chunk than "
                                    "rank 0",
                                    world.rank())};
  }
  auto parts = GroupParts::make(world, config.mesh, weights.config, config.sums);
  if (!parts) return parts.error();
  CpuExecutorConfig cpu = config.cpu;
  cpu.parts = *parts;
  // Ordered sums are never divided, nor are those of a stage of one rank.
  const bool divides = config.sums == RankSums::reduced && config.mesh.stage_ranks() > 1;
  if (divides) cpu.rank_sum = *parts;
  auto runner = make_cpu_runner(slice_weights(weights, (*parts)->slice()), cpu, setup->pool);
  if (!runner) return runner.error();
  return Rank{.parts = std::move(*parts), .runner = std::move(*runner), .setup = *setup};
}

/// Rank 0's: a step goes to all ranks, and its results come from the last stage.
class LeadingRunner final : public Runner {
 public:
  LeadingRunner(ranks::Group& world, const model::ModelConfig& whole, Rank rank)
      : world_(world), whole_(whole), rank_(std::move(rank)) {}

  ~LeadingRunner() override {
    try {
      // An empty message is the end.
      for (int to = 1; to < world_.size(); ++to) (void)world_.send(to, {});
    } catch (const std::exception&) {
      // They end with the job.
    }
  }

  const model::ModelConfig& config() const override { return whole_; }
  const Plan& plan() const override { return rank_.runner->plan(); }
  StepLimits limits() const override { return rank_.runner->limits(); }
  int most_in_flight() const override { return 1; }

  Ticket start(StepData step) override {
    const auto bytes = to_bytes(step);
    for (int to = 1; to < world_.size(); ++to) require(world_.send(to, bytes));
    return rank_.runner->start(std::move(step));
  }

  std::vector<RowResult> finish(Ticket ticket) override {
    auto results = rank_.runner->finish(ticket);
    const Mesh& mesh = rank_.setup.mesh;
    if (mesh.pp == 1) return results;
    const auto bytes = world_.receive_any(mesh.ranks() - mesh.stage_ranks());
    if (!bytes) throw RankFailure(bytes.error().message);
    auto last = results_of(*bytes);
    if (!last) throw RankFailure(last.error().message);
    check(last->size() == results.size(), "the last stage has a result for each row");
    return std::move(*last);
  }

  void watch(LayerProbe* probe) override { rank_.runner->watch(probe); }
  StepTraffic last_traffic() const override { return rank_.runner->last_traffic(); }
  std::span<const std::int64_t> expert_tokens() const override {
    return rank_.runner->expert_tokens();
  }
  std::int64_t weight_bytes() const override { return rank_.runner->weight_bytes(); }

 private:
  static void require(const Expected<void>& done) {
    if (!done) throw RankFailure(done.error().message);
  }

  ranks::Group& world_;
  model::ModelConfig whole_;
  Rank rank_;
};

}  // namespace

Expected<std::unique_ptr<Executor>> lead_ranks(ranks::Group& world,
                                               const model::ModelWeights& weights,
                                               const RankConfig& config) {
  check(world.rank() == 0, "rank 0 leads");
  auto rank = make_rank(world, weights, config);
  if (!rank) return rank.error();
  // Packing takes some of them minutes longer than others: no time limit.
  for (int from = 1; from < world.size(); ++from) {
    if (const auto ready = world.receive_any(from); !ready) return ready.error();
  }
  const KvPoolConfig pool = rank->setup.pool;
  return std::unique_ptr<Executor>(std::make_unique<PooledExecutor>(
      pool, std::make_unique<LeadingRunner>(world, weights.config, std::move(*rank))));
}

Expected<void> follow_ranks(ranks::Group& world, const model::ModelWeights& weights,
                            const RankConfig& config) {
  check(world.rank() > 0, "rank 0 leads, others follow");
  auto rank = make_rank(world, weights, config);
  if (!rank) return rank.error();
  if (const auto told = world.send(0, {}); !told) return told.error();
  const Mesh& mesh = config.mesh;
  const bool reports = mesh.pp > 1 && world.rank() == mesh.ranks() - mesh.stage_ranks();
  while (true) {
    const auto bytes = world.receive_any(0);
    if (!bytes) return bytes.error();
    if (bytes->empty()) return {};
    auto step = step_of(*bytes);
    if (!step) return step.error();
    try {
      check_step(*step, rank->runner->limits());
      const auto results = rank->runner->finish(rank->runner->start(std::move(*step)));
      if (!reports) continue;
      if (const auto sent = world.send(0, to_bytes(results)); !sent) return sent.error();
    } catch (const RankFailure& failure) {
      return Error{failure.what()};
    }
  }
}

}  // namespace gauntlet::engine::inline on_ranks
