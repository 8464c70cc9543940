#include "lab/run/runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "core/os/process.h"
#include "core/ranks/start.h"
#include "core/text/text.h"
#include "lab/run/capability.h"
#include "lab/run/judge.h"
#include "lab/run/worker.h"

namespace gauntlet::lab::inline run {
namespace {

using nlohmann::json;

std::vector<BackendKind> backends_for(const Target& target, BackendChoice choice,
                                      const MachineInfo& machine) {
  switch (choice) {
    case BackendChoice::cpu:
      return {BackendKind::cpu};
    case BackendChoice::cuda:
      return {BackendKind::cuda};
    case BackendChoice::ranks:
      return {BackendKind::ranks};
    case BackendChoice::all: {
      std::vector<BackendKind> all;
      for (BackendKind backend : kBackends) {
        if (target.has(backend)) all.push_back(backend);
      }
      return all;
    }
    case BackendChoice::automatic:
      break;
  }
  if (target.has(BackendKind::cuda) && !machine.gpus.empty()) return {BackendKind::cuda};
  for (BackendKind backend : {BackendKind::cpu, BackendKind::ranks}) {
    if (target.has(backend)) return {backend};
  }
  return {BackendKind::cuda};
}

/// Reads what a worker answered. Nothing where it does not fit: a pair can write into the pipe,
/// too.
template <class Read>
auto read_answer(const json& answer, Read read) -> Expected<decltype(read(answer))> {
  try {
    return read(answer);
  } catch (const json::exception& error) {
    return Error{fmt::format("reported a result that cannot be read: {}", error.what())};
  }
}

Expected<Measurement> read_measurement(const json& answer, std::size_t sides) {
  auto measurement = read_answer(answer, measurement_from_json);
  if (!measurement) return measurement;
  const bool fits = measurement->sides.size() == sides &&
                    std::ranges::all_of(measurement->blocks, [&](const stats::Block& block) {
                      return block.ns.size() == sides;
                    });
  if (!fits || (measurement->ok && measurement->blocks.empty())) {
    return Error{"reported a result that cannot be read: it has no blocks of all sides"};
  }
  return measurement;
}

std::string fresh_token() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

std::uint64_t fresh_seed() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

/// Text that nobody but this user can read, gone at the latest with this object.
class SecretFile {
 public:
  SecretFile(const std::string& path, const std::string& text)
      : path_(std::filesystem::absolute(path).string()) {
    const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return;  // whoever reads it says that it is not there
    (void)!::write(file, text.data(), text.size());
    ::close(file);
  }
  ~SecretFile() { ::unlink(path_.c_str()); }
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::string PlanItem::key() const {
  std::string key = fmt::format("{} {}", target->id(), name_of(backend));
  for (const auto& [name, value] : overrides) key += fmt::format(" {}={}", name, value);
  return key;
}

Expected<std::vector<PlanItem>> make_plan(const std::vector<const Target*>& targets,
                                          BackendChoice choice, const MachineInfo& machine,
                                          const Knobs::Overrides& overrides,
                                          const std::optional<Sweep>& sweep) {
  std::vector<PlanItem> plan;
  for (const Target* target : targets) {
    for (BackendKind backend : backends_for(*target, choice, machine)) {
      std::vector<PlanItem> items;
      if (sweep) {
        for (std::int64_t value : sweep->values) {
          Knobs::Overrides with_value = overrides;
          with_value[sweep->key] = value;
          items.push_back({target, backend, with_value, sweep->key});
        }
      } else {
        items.push_back({target, backend, overrides, ""});
      }
      for (PlanItem& item : items) {
        const auto knobs =
            Knobs::defaults(target->pair.knobs, backend).with(target->pair.knobs, item.overrides);
        if (!knobs) {
          return Error{fmt::format("{}: {}", target->id(), knobs.error().message),
                       ErrorKind::wrong_use};
        }
        plan.push_back(std::move(item));
      }
    }
  }
  return plan;
}

struct Runner::Reply {
  std::optional<json> answer;  // the worker's last message of substance
  Status status = Status::crashed;
  std::string reason;  // when there is no answer
};

Runner::Runner(RunnerOptions options, MachineInfo machine)
    : options_(std::move(options)), machine_(std::move(machine)) {
  if (options_.max_resident_bytes == 0) {
    options_.max_resident_bytes = machine_.cpu.memory_bytes / 4 * 3;
  }
}

RankSetup ranks_of(const RunnerOptions& options, BackendKind backend) {
  using Launcher = RunnerOptions::Launcher;
  if (backend != BackendKind::ranks) return {};
  const bool mpi = options.launcher == Launcher::mpi ||
                   (options.launcher == Launcher::automatic && static_cast<bool>(probe_mpi()));
  return {.count = options.ranks, .transport = mpi ? kMpi : kThreads};
}

/// This program as a worker: alone, with ranks as its threads, or started once for each rank.
Expected<std::vector<std::string>> Runner::command_for(const WorkerRequest& request) const {
  const std::vector<std::string> worker = {options_.program, kWorkerCommand,
                                           to_json(request).dump()};
  if (request.ranks.transport != kMpi) return worker;
  return ranks::mpirun_command(request.ranks.count, worker);
}

Runner::Reply Runner::ask(WorkerRequest request, const std::string& log_name,
                          const ProgressCallback& progress, int process) {
  Reply reply;
  std::string error;
  bool forged = false;
  const std::string token = fresh_token();
  request.ranks = ranks_of(options_, request.backend);
  std::optional<SecretFile> token_file;
  if (request.ranks.transport == kMpi) {
    token_file.emplace(fmt::format("{}/logs/token-{}", options_.folder, fresh_seed()), token);
    request.token_path = token_file->path();
  } else {
    request.token = token;
  }
  const auto argv = command_for(request);
  if (!argv) {
    reply.status = Status::skipped;
    reply.reason = argv.error().message;
    return reply;
  }
  ChildOptions child{
      .argv = *argv,
      .log_path = options_.folder + "/" + log_name,
      .timeout_s = options_.timeout_s,
      .grace_s = request.backend == BackendKind::ranks ? 3.0 : 0.0,
      .max_resident_bytes = options_.max_resident_bytes,
      .interrupt = options_.interrupt,
      .on_line =
          [&](const std::string& line) {
            const json message = json::parse(line, nullptr, false);
            if (!message.is_object() || !message.contains("type")) return;
            const json& type = message["type"];
            const auto text = [&](const char* field) {
              const auto found = message.find(field);
              return found != message.end() && found->is_string() ? found->get<std::string>() : "";
            };
            if (text("token") != token) {
              forged = true;
              return;
            }
            if (type == "progress") {
              const auto ratio = message.find("ratio");
              if (progress) {
                progress({.phase = text("phase"),
                          .side = text("side"),
                          .ratio = ratio != message.end() && ratio->is_number()
                                       ? ratio->get<double>()
                                       : 0,
                          .process = process});
              }
            } else if (type == "error") {
              error = text("reason");
              if (error.empty()) error = "unknown error";
            } else if (type == "measurement" || type == "profile" || type == "ceilings") {
              reply.answer = message;
            }
          },
  };
  const auto outcome = run_child(child);
  if (!outcome) {
    reply.reason = outcome.error().message;
    return reply;
  }
  if (forged) {
    reply.answer.reset();
    reply.status = Status::wrong;
    reply.reason = "a side wrote a report of its own into the pipe between the worker and the lab";
    return reply;
  }
  switch (outcome->end) {
    case ChildOutcome::End::timed_out:
      reply.answer.reset();
      reply.status = Status::timed_out;
      reply.reason = fmt::format("did not finish within {:.0f} s", options_.timeout_s);
      break;
    case ChildOutcome::End::out_of_memory:
      reply.answer.reset();
      reply.reason = fmt::format("used more than {} of memory and was stopped",
                                 format_bytes(static_cast<double>(options_.max_resident_bytes)));
      break;
    case ChildOutcome::End::log_too_large:
      reply.answer.reset();
      reply.reason = fmt::format("printed more than {} and was stopped",
                                 format_bytes(static_cast<double>(child.max_log_bytes)));
      break;
    case ChildOutcome::End::interrupted:
      reply.answer.reset();
      reply.reason = "interrupted";
      break;
    case ChildOutcome::End::signaled:
      reply.answer.reset();
      reply.reason = fmt::format("crashed: {}", signal_text(outcome->code));
      break;
    case ChildOutcome::End::exited:
      if (reply.answer) break;
      reply.reason = !error.empty() ? error
                                    : fmt::format(
                                          "ended its process with exit code {} before reporting a "
                                          "result",
                                          outcome->code);
      break;
  }
  return reply;
}

void Runner::profile(const PlanItem& item, Evidence& evidence, const std::string& log_name,
                     const ProgressCallback& progress) {
  WorkerRequest request{.task = WorkerRequest::Task::profile,
                        .target = item.target->id(),
                        .backend = item.backend,
                        .without = item.without,
                        .knobs = item.overrides,
                        .options = options_.measure,
                        .profile = options_.profile};
  request.options.seed = fresh_seed();
  if (options_.profile == ProfileLevel::deep_dive && item.backend == BackendKind::cuda) {
    request.trace_path =
        fmt::format("{}/profiles/{}.trace.json", options_.folder, slugify(item.key()));
  }
  if (progress) progress({.phase = "profile"});
  const Reply reply = ask(request, log_name, {}, 0);
  const Expected<ProfileOutcome> outcome =
      reply.answer ? read_answer(*reply.answer, profile_outcome_from_json) : Error{reply.reason};
  if (outcome) {
    evidence.profile = *outcome;
  } else if (reply.status == Status::wrong) {
    evidence.profile = ProfileOutcome{.wrong = reply.reason};
  } else {
    evidence.profile =
        ProfileOutcome{.why_not = "the profiling process failed: " + outcome.error().message};
  }
}

Runner::Reply Runner::measure(const PlanItem& item, Evidence& evidence, const std::string& log_name,
                              const ProgressCallback& progress) {
  const Target& target = *item.target;
  const SidePair headline = target.headline(item.backend);
  for (int process = 0; process < options_.max_processes; ++process) {
    if (process >= options_.processes) {
      std::vector<stats::ProcessBlocks> blocks;
      for (const Measurement& m : evidence.processes) {
        if (m.ok) blocks.push_back(m.blocks);
      }
      // A process that found the GPU too hot is made up for by another.
      if (static_cast<int>(blocks.size()) >= options_.processes) {
        const stats::Interval ratio = stats::estimate_ratio(blocks, headline.from, headline.to);
        if (ratio.relative_half_width() < 5 * options_.measure.half_width) break;
      }
    }
    WorkerRequest request{.target = target.id(),
                          .backend = item.backend,
                          .without = item.without,
                          .knobs = item.overrides,
                          .options = options_.measure};
    request.options.seed = fresh_seed();
    request.options.cold = options_.cold.value_or(target.pair.cold);
    Reply reply = ask(request, log_name, progress, process + 1);
    if (!reply.answer) return reply;
    Expected<Measurement> measurement =
        read_measurement(*reply.answer, target.sides(item.backend).size());
    if (!measurement) return {.status = Status::crashed, .reason = measurement.error().message};
    evidence.processes.push_back(std::move(*measurement));
    if (!evidence.processes.back().ok && !is_too_hot(evidence.processes.back())) break;
  }
  return {.status = Status::passed};
}

Result Runner::run(const PlanItem& planned, std::optional<Ceilings>& ceilings,
                   const ProgressCallback& progress) {
  const auto begin = std::chrono::steady_clock::now();
  const Knobs knobs = *Knobs::defaults(planned.target->pair.knobs, planned.backend)
                           .with(planned.target->pair.knobs, planned.overrides);
  std::vector<AbsentSide> absent;
  const auto blank = [&] {
    Result result = describe(*planned.target, planned.backend, knobs);
    result.ranks = ranks_of(options_, planned.backend);
    result.sweep_key = planned.sweep_key;
    result.absent = absent;
    for (const AbsentSide& side : absent) {
      result.notes.push_back(fmt::format("without the yardstick {}: {}", side.name, side.reason));
    }
    return result;
  };
  Result result = blank();
  if (std::string missing =
          missing_capability(*planned.target, planned.backend, machine_, result.ranks);
      !missing.empty()) {
    result.status = Status::skipped;
    result.reason = missing;
    return result;
  }
  absent = absent_yardsticks(*planned.target, planned.backend, machine_, result.ranks);
  result = blank();
  PlanItem item = planned;
  for (const AbsentSide& side : absent) item.without.push_back(side.name);
  const Target target = planned.target->without(planned.backend, item.without);
  item.target = &target;
  const std::string log_name = fmt::format("logs/{}.log", slugify(item.key()));
  Evidence evidence;
  const Reply reply = measure(item, evidence, log_name, progress);
  if (reply.status != Status::passed) {
    result.status = reply.status;
    result.reason = reply.reason;
  } else {
    if (options_.profile != ProfileLevel::none && evidence.processes.back().ok) {
      profile(item, evidence, log_name, progress);
    }
    evidence.ceilings = ceilings;
    if (target.facts(item.backend).cost(knobs).level == Cost::Level::disk) {
      look_at_disk(ceilings, evidence, progress);
    }
    judge(result, target, knobs, evidence);
    // The ceilings may be of a busier moment: what is above them today as well is wrong.
    if (is_above_ceiling(result) && ceilings) {
      if (const auto again = measure_ceilings(ceilings->backend, progress)) {
        evidence.ceilings = best_of(*evidence.ceilings, *again);
        ceilings = best_of(*ceilings, *again);
        result = blank();
        judge(result, target, knobs, evidence);
      }
    }
  }
  result.log = log_name;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

void Runner::look_at_disk(std::optional<Ceilings>& ceilings, Evidence& evidence,
                          const ProgressCallback& progress) {
  if (!ceilings) return;
  const auto now = ask_for_ceilings(WorkerRequest::Task::disk_ceiling, ceilings->backend, progress);
  if (!now) return;
  ceilings = best_of(*ceilings, *now);
  evidence.ceilings = ceilings;
}

Expected<Ceilings> Runner::measure_ceilings(BackendKind backend, const ProgressCallback& progress) {
  return ask_for_ceilings(WorkerRequest::Task::ceilings, backend, progress);
}

Expected<Ceilings> Runner::ask_for_ceilings(WorkerRequest::Task task, BackendKind backend,
                                            const ProgressCallback& progress) {
  const Reply reply = ask({.task = task, .backend = backend},
                          fmt::format("logs/ceilings-{}.log", name_of(backend)), progress, 0);
  if (!reply.answer) return Error{"ceilings could not be measured: " + reply.reason};
  const auto ceilings = read_answer(
      *reply.answer, [](const json& answer) { return ceilings_from_json(answer.at("ceilings")); });
  return ceilings ? *ceilings
                  : Error{"ceilings could not be measured: " + ceilings.error().message};
}

}  // namespace gauntlet::lab::inline run
