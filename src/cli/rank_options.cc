#include "cli/rank_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "cli/engine_options.h"
#include "core/os/system_files.h"
#include "core/os/threads.h"
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
  if (arguments.backend == BackendChoice::cuda) {
    return wrong_use("--mesh runs on CPUs: ranks of GPUs are not there yet");
  }
  if (ranks.mesh) return Mesh::parse(*ranks.mesh);
  const auto model = open_model(arguments);
  if (!model) return model.error();
  return engine::mesh_for(model->weights.config, *ranks.local_ranks);
}

/// The CPUs of a host go to its ranks in equal shares, unless their starter has bound them.
RankJob job_of(ranks::Group& group, const Mesh& mesh, RankSums sums, int local_rank,
               int local_ranks) {
  const auto cpus = static_cast<int>(allowed_cpus().size());
  const bool is_bound = cpus < static_cast<int>(std::thread::hardware_concurrency()) &&
                        ranks::started_as().by != ranks::Start::By::none;
  const int threads = is_bound ? cpus : std::max(1, cpus / local_ranks);
  return {.group = group,
          .mesh = mesh,
          .sums = sums,
          .threads = threads,
          .first_cpu = is_bound ? 0 : local_rank * threads % cpus};
}

Expected<void> follow(const EngineArguments& arguments, const RankJob& job) {
  const auto model = open_model(arguments);
  if (!model) return model.error();
  return engine::follow_ranks(job.group, model->weights, rank_config(arguments, job));
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
    return lead(led);
  } catch (const engine::RankFailure& failure) {
    return Error{failure.what()};
  }
}

int run_threads_of(const EngineArguments& arguments, const Mesh& mesh,
                   const std::function<int(const EngineArguments&)>& lead) {
  int code = -1;  // of rank 0, once it has ended and said why
  const auto done = ranks::run_threads(mesh.ranks(), [&](ranks::Group& group) -> Expected<void> {
    const RankJob job = job_of(group, mesh, arguments.ranks.sums, group.rank(), group.size());
    const auto ended = take_part(arguments, job, lead);
    if (!ended) return ended.error();
    if (group.rank() == 0) code = *ended;
    return {};
  });
  // Where rank 0 has failed, the others only miss it.
  return code > 0 || done ? code : report_error(done.error());
}

int run_processes_of(const EngineArguments& arguments, const Mesh& mesh,
                     const std::function<int(const EngineArguments&)>& lead) {
  auto group = ranks::join();
  if (!group) return report_error(group.error());
  const int rank = (*group)->rank();
  const RankJob job = job_of(**group, mesh, arguments.ranks.sums,
                             number_in_environment("OMPI_COMM_WORLD_LOCAL_RANK", rank),
                             number_in_environment("OMPI_COMM_WORLD_LOCAL_SIZE", 1));
  const auto ended = take_part(arguments, job, lead);
  if (ended) return *ended;
  const Error& error = ended.error();
  // Wrong use is the same on all ranks.
  if (rank > 0 && error.kind == ErrorKind::wrong_use) return 2;
  return report_error(
      rank == 0 ? error : Error{fmt::format("rank {}: {}", rank, error.message), error.kind});
}

}  // namespace

void add_rank_options(CLI::App& command, RankArguments& arguments) {
  command
      .add_option(
          "--mesh", arguments.mesh,
          "on CPUs: the model on several ranks, by heads (tp), experts (ep) and layers (pp)")
      ->option_text("tp2,ep4,pp2");
  command
      .add_option("--local-ranks", arguments.local_ranks,
                  "as many ranks in this process, without mpirun")
      ->check(CLI::Range(1, 256))
      ->option_text("N");
  add_choice<RankSums>(
      command, "--rank-sums", arguments.sums,
      {{"reduced", RankSums::reduced}, {"ordered", RankSums::ordered}},
      "partial results are added over ranks, or inputs gathered: one rank's bits, slower");
}

engine::RankConfig rank_config(const EngineArguments& arguments, const RankJob& job) {
  engine::RankConfig config{.mesh = job.mesh, .sums = job.sums};
  config.cpu.options = arguments.options;
  if (!config.cpu.options.threads) config.cpu.options.threads = job.threads;
  config.cpu.first_cpu = job.first_cpu;
  config.cpu.max_batch_tokens = arguments.chunk.value_or(kCpuChunk);
  return config;
}

int run_on_ranks(const EngineArguments& arguments,
                 const std::function<int(const EngineArguments&)>& lead) {
  if (!arguments.ranks.given()) return lead(arguments);
  const auto mesh = mesh_of(arguments);
  if (!mesh) return report_error(mesh.error());
  if (ranks::started_as().by != ranks::Start::By::none) {
    if (arguments.ranks.local_ranks) {
      return report_error(
          wrong_use("--local-ranks is for a job without a starter; this one was started as ranks"));
    }
    return run_processes_of(arguments, *mesh, lead);
  }
  const int started = arguments.ranks.local_ranks.value_or(1);
  if (started != mesh->ranks()) {
    return report_error(wrong_use(fmt::format(
        "the mesh {0} has {1} ranks: start them with mpirun -n {1}, or give --local-ranks {1}",
        mesh->text(), mesh->ranks())));
  }
  return run_threads_of(arguments, *mesh, lead);
}

}  // namespace gauntlet::cli
