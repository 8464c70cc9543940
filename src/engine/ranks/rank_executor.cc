#include "engine/ranks/rank_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "core/check.h"
#include "engine/cpu/kv_store.h"
#include "engine/ranks/step_wire.h"
#include "engine/steps/pooled_executor.h"

namespace gauntlet::engine::inline on_ranks {
namespace {

/// What all ranks must have alike, and rank 0's pool.
struct Setup {
  KvPoolConfig pool;  // of CPUs
  bool on_gpus = false;
  std::int64_t max_batch_tokens = 0;
  std::int64_t model_bytes = 0;
  std::int64_t num_layers = 0;
  Mesh mesh;
  RankSums sums = RankSums::reduced;
};

struct Rank {
  std::shared_ptr<GroupParts> parts;  // null on GPUs
  std::unique_ptr<Runner> runner;
  Setup setup;
  std::int64_t kv_bytes = 0;
};

/// A message of this one byte asks for a rank's counters; none at all is the end, others are steps.
constexpr std::byte kBeat{0xb0};
/// A follower that is asked every second gives a silent rank 0 up after so long. Rank 0 may have a
/// draft model of its own to compute in between.
constexpr double kSilence_s = 60;

bool is_beat(const std::vector<std::byte>& message) {
  return message.size() == 1 && message.front() == kBeat;
}

/// Of a rank since it packed its weights; waiting for work is left out.
RankCounters counters_of(const ranks::Traffic& now, const ranks::Traffic& before, const Rank& rank,
                         std::int64_t steps, double idle_s) {
  return {.steps = steps,
          .sent_bytes = now.sent_bytes - before.sent_bytes,
          .waited_s = now.waited_s - before.waited_s - idle_s,
          .weight_bytes = rank.runner->weight_bytes(),
          .kv_bytes = rank.kv_bytes};
}

Expected<Rank> make_gpu_rank(ranks::Group& world, const model::ModelWeights& weights,
                             const RankConfig& config, Setup setup) {
  CudaRankConfig cuda{.executor = *config.cuda,
                      .slices = {},
                      .attention = {},
                      .timeout_s = config.timeout_s,
                      // A probe waits for its rank's stream in the middle of a step.
                      .meeting = config.probe != nullptr ? RankMeeting::on_hosts : config.meeting};
  const MeshPlace own = place_of(config.mesh, world.rank());
  for (int rank = 0; rank < world.size(); ++rank) {
    cuda.slices.push_back(shard_of(weights.config, config.mesh, rank));
    if (place_of(config.mesh, rank).replica == own.replica) cuda.attention.push_back(rank);
  }
  auto made = make_cuda_rank(world, weights, cuda);
  if (!made) return made.error();
  setup.pool = made->pool;
  return Rank{.parts = nullptr,
              .runner = std::move(made->runner),
              .setup = setup,
              .kv_bytes = made->kv_bytes};
}

/// All ranks call it.
Expected<Rank> make_rank(ranks::Group& world, const model::ModelWeights& weights,
                         const RankConfig& config) {
  if (world.size() != config.mesh.ranks()) {
    return Error{fmt::format("the mesh {} has {} ranks, and {} were started", config.mesh.text(),
                             config.mesh.ranks(), world.size()),
                 ErrorKind::wrong_use};
  }
  const bool on_gpus = config.cuda.has_value();
  check(config.cpu.export_layers.empty() && !(on_gpus && !config.cuda->export_layers.empty()),
        "ranks export no residuals");
  if (const auto fits = check_mesh(weights.config, config.mesh); !fits) return fits.error();
  KvPoolConfig pool;
  if (on_gpus) {
    if (const auto can = check_gpu_ranks(config.mesh, config.sums); !can) return can.error();
  } else {
    const auto plan = resolve(config.cpu.options);
    if (!plan) return plan.error();
    pool = cpu_pool(weights.config, plan->kv, config.cpu);
  }
  const Setup own{
      .pool = pool,
      .on_gpus = on_gpus,
      .max_batch_tokens = on_gpus ? config.cuda->max_batch_tokens : config.cpu.max_batch_tokens,
      .model_bytes = weights.file_bytes,
      .num_layers = weights.config.num_layers,
      .mesh = config.mesh,
      .sums = config.sums};
  const auto setup = ranks::agree(world, own);
  if (!setup) return setup.error();
  const bool same = setup->model_bytes == own.model_bytes && setup->num_layers == own.num_layers &&
                    setup->mesh == own.mesh && setup->sums == own.sums &&
                    setup->on_gpus == own.on_gpus &&
                    setup->max_batch_tokens == own.max_batch_tokens;
  const auto all_same = ranks::all_true(world, same);
  if (!all_same) return all_same.error();
  if (!*all_same) {
    return Error{same ? "another rank has another model, mesh, --rank-sums or --chunk than rank 0"
                      : fmt::format("rank {} has another model, mesh, --rank-sums or --chunk than "
                                    "rank 0",
                                    world.rank())};
  }
  if (on_gpus) return make_gpu_rank(world, weights, config, *setup);
  auto parts = GroupParts::make(world, config.mesh, weights.config, config.sums);
  if (!parts) return parts.error();
  CpuExecutorConfig cpu = config.cpu;
  cpu.parts = *parts;
  // Ordered sums are never divided, nor are those of a stage of one rank.
  const bool divides = config.sums == RankSums::reduced && config.mesh.stage_ranks() > 1;
  if (divides) cpu.rank_sum = *parts;
  auto runner = make_cpu_runner(slice_weights(weights, (*parts)->slice()), cpu, setup->pool);
  if (!runner) return runner.error();
  const std::int64_t kv_bytes =
      cpu::KvStore::bytes_for((*runner)->config(), setup->pool, (*runner)->plan().kv);
  return Rank{.parts = std::move(*parts),
              .runner = std::move(*runner),
              .setup = *setup,
              .kv_bytes = kv_bytes};
}

/// A GPU has the next step queued behind the one that it computes.
int steps_in_flight(const Rank& rank) {
  return rank.setup.on_gpus ? rank.runner->most_in_flight() : 1;
}

/// Rank 0's: a step goes to all ranks, and its results come from the last stage.
class LeadingRunner final : public Runner {
 public:
  LeadingRunner(ranks::Group& world, const model::ModelConfig& whole, Rank rank,
                const RankConfig& config)
      : world_(world),
        whole_(whole),
        rank_(std::move(rank)),
        timeout_s_(config.timeout_s),
        pulse_(config.pulse) {
    if (pulse_) pulse_->ask_by([this] { return ask(); });
  }

  ~LeadingRunner() override {
    if (pulse_) pulse_->ask_by({});
    try {
      while (rank_.setup.on_gpus && finished_ < steps_) (void)finish(finished_ + 1);
      // An empty message is the end.
      for (int to = 1; to < world_.size(); ++to) (void)world_.send(to, {});
      if (!rank_.setup.on_gpus) return;
      // No rank of a GPU frees memory that another one's last step still reads.
      for (int from = 1; from < world_.size(); ++from) (void)world_.receive_any(from, timeout_s_);
    } catch (const std::exception&) {
      // They end with the job.
    }
  }

  const model::ModelConfig& config() const override { return whole_; }
  const Plan& plan() const override { return rank_.runner->plan(); }
  StepLimits limits() const override { return rank_.runner->limits(); }
  int most_in_flight() const override { return steps_in_flight(rank_); }

  Ticket start(StepData step) override {
    if (pulse_) pulse_->beat_if_due();
    ++steps_;
    const auto bytes = to_bytes(step);
    for (int to = 1; to < world_.size(); ++to) require(world_.send(to, bytes));
    // A launch may wait for the stream, which waits for ranks that have not got the step: where a
    // kernel is loaded, memory allocated, or the queue full.
    if (rank_.setup.on_gpus) require(world_.flush());
    return rank_.runner->start(std::move(step));
  }

  std::vector<RowResult> finish(Ticket ticket) override {
    finished_ = ticket;
    auto results = rank_.runner->finish(ticket);
    const Mesh& mesh = rank_.setup.mesh;
    if (mesh.pp == 1) return results;
    const auto bytes = world_.receive_any(mesh.ranks() - mesh.stage_ranks(), timeout_s_);
    if (!bytes) throw RankFailure(bytes.error().message);
    auto last = results_of(*bytes);
    if (!last) throw RankFailure(last.error().message);
    check(last->size() == results.size(), "the last stage has a result for each row");
    return std::move(*last);
  }

  void watch(LayerProbe* probe) override { rank_.runner->watch(probe); }
  void time_gaps(std::vector<double>* us) override { rank_.runner->time_gaps(us); }
  StepTraffic last_traffic() const override { return rank_.runner->last_traffic(); }
  std::span<const std::int64_t> expert_tokens() const override {
    return rank_.runner->expert_tokens();
  }
  std::int64_t weight_bytes() const override { return rank_.runner->weight_bytes(); }

 private:
  static void require(const Expected<void>& done) {
    if (!done) throw RankFailure(done.error().message);
  }

  std::vector<RankCounters> ask() {
    for (int to = 1; to < world_.size(); ++to) {
      require(world_.send(to, std::span(&kBeat, 1)));
    }
    std::vector<RankCounters> all = {counters_of(world_.traffic(), before_, rank_, steps_, 0)};
    for (int from = 1; from < world_.size(); ++from) {
      all.emplace_back();
      require(world_.receive(from, std::as_writable_bytes(std::span(&all.back(), 1))));
    }
    return all;
  }

  ranks::Group& world_;
  model::ModelConfig whole_;
  Rank rank_;
  double timeout_s_;
  std::shared_ptr<RankPulse> pulse_;
  const ranks::Traffic before_ = world_.traffic();
  std::int64_t steps_ = 0;
  Ticket finished_ = 0;
};

}  // namespace

Expected<void> check_gpu_ranks(const Mesh& mesh, RankSums sums) {
  const auto refuse = [](const char* sentence) { return Error{sentence, ErrorKind::wrong_use}; };
  if (mesh.pp > 1) return refuse("stages (pp) run on CPUs: on GPUs a mesh has tp and ep");
  if (sums == RankSums::ordered) {
    return refuse("--rank-sums ordered is for ranks of CPUs: GPUs add up parts");
  }
  return {};
}

Expected<std::unique_ptr<Executor>> lead_ranks(ranks::Group& world,
                                               const model::ModelWeights& weights,
                                               const RankConfig& config) {
  check(world.rank() == 0, "rank 0 leads");
  auto rank = make_rank(world, weights, config);
  if (!rank) return rank.error();
  if (config.probe != nullptr) rank->runner->watch(config.probe);
  // Packing takes some of them minutes longer than others: no time limit.
  for (int from = 1; from < world.size(); ++from) {
    if (const auto ready = world.receive_any(from); !ready) return ready.error();
  }
  world.set_timeout(config.timeout_s);
  const KvPoolConfig pool = rank->setup.pool;
  return std::unique_ptr<Executor>(std::make_unique<PooledExecutor>(
      pool, std::make_unique<LeadingRunner>(world, weights.config, std::move(*rank), config)));
}

Expected<void> follow_ranks(ranks::Group& world, const model::ModelWeights& weights,
                            const RankConfig& config) {
  check(world.rank() > 0, "rank 0 leads, others follow");
  auto rank = make_rank(world, weights, config);
  if (!rank) return rank.error();
  if (config.probe != nullptr) rank->runner->watch(config.probe);
  if (const auto told = world.send(0, {}); !told) return told.error();
  world.set_timeout(config.timeout_s);
  const Mesh& mesh = config.mesh;
  const bool reports = mesh.pp > 1 && world.rank() == mesh.ranks() - mesh.stage_ranks();
  const ranks::Traffic before = world.traffic();
  double silence_s = ranks::kForever, idle_s = 0;
  std::deque<Ticket> in_flight;
  for (std::int64_t steps = 0;;) {
    const double waited_s = world.traffic().waited_s;
    const auto bytes = world.receive_any(0, silence_s);
    idle_s += world.traffic().waited_s - waited_s;
    if (!bytes) return bytes.error();
    if (bytes->empty()) break;
    if (is_beat(*bytes)) {
      silence_s = std::max(kSilence_s, config.timeout_s);
      const RankCounters own = counters_of(world.traffic(), before, *rank, steps, idle_s);
      const auto told = world.send(0, std::as_bytes(std::span(&own, 1)));
      if (!told) return told.error();
      continue;
    }
    ++steps;
    auto step = step_of(*bytes);
    if (!step) return step.error();
    try {
      check_step(*step, rank->runner->limits());
      in_flight.push_back(rank->runner->start(std::move(*step)));
      if (std::ssize(in_flight) < steps_in_flight(*rank)) continue;
      const auto results = rank->runner->finish(in_flight.front());
      in_flight.pop_front();
      if (!reports) continue;
      if (const auto sent = world.send(0, to_bytes(results)); !sent) return sent.error();
    } catch (const RankFailure& failure) {
      return Error{failure.what()};
    }
  }
  if (!rank->setup.on_gpus) return {};
  try {
    for (const Ticket ticket : in_flight) (void)rank->runner->finish(ticket);
  } catch (const RankFailure& failure) {
    return Error{failure.what()};
  }
  return world.send(0, {});
}

}  // namespace gauntlet::engine::inline on_ranks
