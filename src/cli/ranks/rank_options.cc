#include "cli/ranks/rank_options.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <thread>

#include "cli/engine_options.h"
#include "core/cuda/device.h"
#include "core/os/system_files.h"
#include "core/os/threads.h"
#include "core/ranks/process_watch.h"
#include "core/ranks/start.h"
#include "core/ranks/thread_group.h"

namespace gauntlet::cli {
namespace {

using engine::Mesh;
using engine::RankSums;

int number_in_environment(const char* variable, int otherwise) {
  const char* value = std::getenv(variable);
  if (value == nullptr) return otherwise;
  return static_cast<int>(leading_number(value).value_or(otherwise));
}

Expected<Mesh> mesh_of(const EngineArguments& arguments) {
  const RankArguments& ranks = arguments.ranks;
  auto mesh = [&]() -> Expected<Mesh> {
    if (ranks.mesh) return Mesh::parse(*ranks.mesh);
    const auto model = open_model(arguments);
    if (!model) return model.error();
    return engine::mesh_for(model->weights.config, *ranks.local_ranks);
  }();
  if (mesh && arguments.backend == BackendChoice::cuda) {
    if (const auto can = engine::check_gpu_ranks(*mesh, ranks.sums); !can) return can.error();
  }
  return mesh;
}

/// A server tells its clients within ten seconds. A stage of a pipeline waits for whole steps of
/// those before it.
double timeout_of(const RankArguments& arguments, const Mesh& mesh, RankUse use) {
  constexpr double kServing_s = 5, kOtherwise_s = 30;
  const bool serves = use.what == RankUse::For::serving && mesh.pp == 1;
  return arguments.timeout_s.value_or(serves ? kServing_s : kOtherwise_s);
}

/// The CPUs of a host go to its ranks in equal shares, unless their starter has bound them.
RankJob job_of(ranks::Group& group, const Mesh& mesh, const EngineArguments& arguments, RankUse use,
               int local_rank, int local_ranks) {
  const auto cpus = static_cast<int>(allowed_cpus().size());
  const bool is_bound = cpus < static_cast<int>(std::thread::hardware_concurrency()) &&
                        ranks::started_as().by != ranks::Start::By::none;
  const int threads = is_bound ? cpus : std::max(1, cpus / local_ranks);
  const bool on_gpus = arguments.backend == BackendChoice::cuda;
  const std::size_t gpus = on_gpus ? query_gpus().gpus.size() : 0;
  // Threads of one process stay on one GPU: between several, processes add up by NCCL.
  const bool is_process = ranks::started_as().by != ranks::Start::By::none;
  return {
      .group = group,
      .mesh = mesh,
      .sums = arguments.ranks.sums,
      .threads = threads,
      .first_cpu = is_bound ? 0 : local_rank * threads % cpus,
      .device = is_process && gpus > 0 ? local_rank % static_cast<int>(gpus) : 0,
      .timeout_s = timeout_of(arguments.ranks, mesh, use),
      .pulse = use.what == RankUse::For::serving ? std::make_shared<engine::RankPulse>() : nullptr};
}

/// What rank 0 asks of the others, before each executor and at its end.
struct Request {
  enum class Kind : std::int32_t { follow, end } kind = Kind::end;
  /// Commands that make several executors differ in this.
  engine::Activations activations = engine::Activations::f32;
};

Expected<void> request(ranks::Group& group, const Request& asked) {
  for (int to = 1; to < group.size(); ++to) {
    const auto sent = group.send(to, std::as_bytes(std::span(&asked, 1)));
    if (!sent) return sent.error();
  }
  return {};
}

Expected<void> follow(const EngineArguments& arguments, const RankJob& job) {
  const auto model = open_model(arguments);
  if (!model) return model.error();
  while (true) {
    const auto bytes = job.group.receive_any(0);
    if (!bytes) return bytes.error();
    Request asked;
    if (bytes->size() != sizeof(asked)) return Error{"rank 0 runs another program"};
    std::memcpy(&asked, bytes->data(), sizeof(asked));
    if (asked.kind == Request::Kind::end) return {};
    EngineArguments own = arguments;
    own.options.activations = asked.activations;
    const auto done = engine::follow_ranks(job.group, model->weights, rank_config(own, job));
    if (!done) return done.error();
  }
}

/// As one rank: rank 0's exit code, or what went wrong.
Expected<int> take_part(const EngineArguments& arguments, const RankJob& job,
                        const std::function<int(const EngineArguments&)>& lead) {
  try {
    if (job.group.rank() > 0) {
      const auto followed = follow(arguments, job);
      return followed ? Expected<int>(0) : followed.error();
    }
    EngineArguments led = arguments;
    led.job = &job;
    const int code = lead(led);
    const auto told = request(job.group, {.kind = Request::Kind::end});
    // A command that failed has said why.
    if (!told && code == 0) return told.error();
    return code;
  } catch (const engine::RankFailure& failure) {
    return Error{failure.what()};
  }
}

int run_threads_of(const EngineArguments& arguments, const Mesh& mesh, RankUse use,
                   const std::function<int(const EngineArguments&)>& lead) {
  // Before CUDA starts: a kernel that is loaded when it is first launched waits for the streams of
  // other ranks in this process, which wait for this one.
  if (arguments.backend == BackendChoice::cuda) ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  int code = -1;  // of rank 0, once it has ended and said why
  const auto done = ranks::run_threads(mesh.ranks(), [&](ranks::Group& group) -> Expected<void> {
    const RankJob job = job_of(group, mesh, arguments, use, group.rank(), group.size());
    const auto ended = take_part(arguments, job, lead);
    if (!ended) return ended.error();
    if (group.rank() == 0) code = *ended;
    return {};
  });
  // Where rank 0 has failed, the others only miss it.
  return code > 0 || done ? code : report_error(done.error());
}

/// Longer than rank 0 takes to tell its clients what happened: mpirun ends all ranks with the first
/// that ends by an error.
constexpr double kLastWords_s = 3;

/// A starter that is told to end tells all ranks at once: rank 0 drains, and the others go on for
/// it as long as it is there.
void outlive_signals(const std::shared_ptr<ranks::ProcessWatch>& watch) {
  if (!watch->watches(0)) return;
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::signal(number, SIG_IGN);
  std::thread([watch] {
    while (!watch->wait_for(0, 3600)) {
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(kLastWords_s));
    ::_exit(static_cast<int>(ErrorKind::environment));
  }).detach();
}

int run_processes_of(const EngineArguments& arguments, const Mesh& mesh, RankUse use,
                     const std::function<int(const EngineArguments&)>& lead) {
  auto group = ranks::join();
  if (!group) return report_error(group.error());
  const int rank = (*group)->rank();
  auto watched = ranks::ProcessWatch::of(**group);
  if (!watched) return report_error(watched.error());
  const std::shared_ptr<ranks::ProcessWatch> watch = std::move(*watched);
  if (rank > 0 && use.what == RankUse::For::serving) outlive_signals(watch);
  const RankJob job = job_of(**group, mesh, arguments, use,
                             number_in_environment("OMPI_COMM_WORLD_LOCAL_RANK", rank),
                             number_in_environment("OMPI_COMM_WORLD_LOCAL_SIZE", 1));
  const auto ended = take_part(arguments, job, lead);
  if (ended) return *ended;
  const Error& error = ended.error();
  // Wrong use is the same on all ranks.
  if (rank > 0 && error.kind == ErrorKind::wrong_use) return 2;
  const int code = report_error(
      rank == 0 ? error : Error{fmt::format("rank {}: {}", rank, error.message), error.kind});
  if (rank > 0) watch->wait_for(0, kLastWords_s);
  return code;
}

}  // namespace

void add_rank_sums(CLI::App& command, RankArguments& arguments) {
  add_choice<RankSums>(
      command, "--rank-sums", arguments.sums,
      {{"reduced", RankSums::reduced}, {"ordered", RankSums::ordered}},
      "partial results are added over ranks, or inputs gathered: one rank's bits, slower");
}

void add_rank_options(CLI::App& command, RankArguments& arguments) {
  command
      .add_option(
          "--mesh", arguments.mesh,
          "the model on several ranks, by heads (tp), experts (ep) and layers (pp); of CPUs, but "
          "for --backend cuda")
      ->option_text("tp2,ep4,pp2");
  command
      .add_option("--local-ranks", arguments.local_ranks,
                  "as many ranks in this process, without mpirun")
      ->check(CLI::Range(1, 256))
      ->option_text("N");
  add_rank_sums(command, arguments);
  command
      .add_option("--rank-timeout", arguments.timeout_s,
                  "for a rank to come to a call of all (default: 30, for a server without pp 5)")
      ->check(CLI::Range(0.1, 86400.0))
      ->option_text("SECONDS");
}

engine::RankConfig rank_config(const EngineArguments& arguments, const RankJob& job) {
  engine::RankConfig config{
      .mesh = job.mesh, .sums = job.sums, .timeout_s = job.timeout_s, .pulse = job.pulse};
  config.cpu.options = arguments.options;
  if (!config.cpu.options.threads) config.cpu.options.threads = job.threads;
  config.cpu.first_cpu = job.first_cpu;
  config.cpu.max_batch_tokens = arguments.chunk.value_or(kCpuChunk);
  if (arguments.backend == BackendChoice::cuda) {
    config.cuda =
        engine::CudaExecutorConfig{.options = arguments.options,
                                   .device = job.device,
                                   .max_batch_tokens = arguments.chunk.value_or(kGpuChunk),
                                   .gpu_memory = arguments.gpu_memory};
  }
  return config;
}

Expected<void> call_followers(const EngineArguments& arguments, const RankJob& job) {
  return request(job.group,
                 {.kind = Request::Kind::follow, .activations = arguments.options.activations});
}

int run_on_ranks(const EngineArguments& arguments,
                 const std::function<int(const EngineArguments&)>& lead, RankUse use) {
  if (!arguments.ranks.given()) return lead(arguments);
  const auto mesh = mesh_of(arguments);
  if (!mesh) return report_error(mesh.error());
  if (ranks::started_as().by != ranks::Start::By::none) {
    if (arguments.ranks.local_ranks) {
      return report_error(
          wrong_use("--local-ranks is for a job without a starter; this one was started as ranks"));
    }
    return run_processes_of(arguments, *mesh, use, lead);
  }
  const int started = arguments.ranks.local_ranks.value_or(1);
  if (started != mesh->ranks()) {
    return report_error(wrong_use(fmt::format(
        "the mesh {0} has {1} ranks: start them with mpirun -n {1}, or give --local-ranks {1}",
        mesh->text(), mesh->ranks())));
  }
  return run_threads_of(arguments, *mesh, use, lead);
}

}  // namespace gauntlet::cli
