#include "lab/run/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "core/os/files.h"
#include "core/os/process.h"
#include "core/ranks/start.h"
#include "core/ranks/thread_group.h"
#include "lab/ceilings/ceilings.h"
#include "lab/measure/rank_measurements.h"
#include "lab/measure/ranks_backend.h"

namespace gauntlet::lab::inline run {
namespace {

using nlohmann::json;

/// The way to the parent. A side shares this process and may write into any descriptor it finds;
/// what does not carry the token is not believed. Of several ranks only the first speaks.
class Messenger {
 public:
  /// Takes the pipe and hides it.
  explicit Messenger(int fd) {
    std::random_device device;
    constexpr int kFirst = 64, kRange = 512;
    fd_ = fcntl(fd, F_DUPFD_CLOEXEC, kFirst + static_cast<int>(device() % kRange));
    if (fd_ >= 0) close(fd);
    if (fd_ < 0) fd_ = fd;
  }
  void set_token(std::string token) { token_ = std::move(token); }

  void send(json message) const {
    message["token"] = token_;
    // A side may leave any bytes in a reason; invalid UTF-8 must not end the worker.
    const std::string line = message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    std::size_t sent = 0;
    while (sent < line.size()) {
      const ssize_t count = write(fd_, line.data() + sent, line.size() - sent);
      if (count <= 0) return;
      sent += static_cast<std::size_t>(count);
    }
  }
  void send_as(const char* type, json message) const {
    message["type"] = type;
    send(std::move(message));
  }
  int fail(const std::string& reason) const {
    send_as("error", {{"reason", reason}});
    return 1;
  }

 private:
  int fd_;
  std::string token_;
};

std::function<void(const MeasureProgress&)> progress_to(const Messenger* parent) {
  if (!parent) return {};
  return [parent](const MeasureProgress& p) {
    parent->send_as(
        "progress",
        {{"phase", p.phase}, {"side", p.side}, {"ratio", p.ratio}, {"blocks", p.blocks}});
  };
}

/// What is run, checked against the catalogue.
struct Job {
  Target target;  // without the yardsticks that the request leaves out
  Knobs knobs;
  const WorkerRequest& request;
};

/// What all ranks measured, merged, the same on each. Only rank 0 has a parent to tell.
Expected<Measurement> measure_as_rank(const Job& job, ranks::Group& group, const Messenger* parent,
                                      std::shared_ptr<KnownThreads> known = nullptr) {
  Measurement own;
  {
    const auto backend = make_ranks_backend(group, std::move(known));
    own = measure_target(job.target, job.knobs, *backend, job.request.options, progress_to(parent));
  }
  const auto texts =
      ranks::gather(group, to_json(own).dump(-1, ' ', false, json::error_handler_t::replace));
  if (!texts) return texts.error();
  std::vector<Measurement> all;
  for (const std::string& text : *texts) all.push_back(measurement_from_json(json::parse(text)));
  return merge_ranks(all);
}

/// As the ranks of this process.
Expected<Measurement> measure_as_threads(const Job& job, const Messenger& parent) {
  Measurement merged;
  const auto known = std::make_shared<KnownThreads>();
  const auto ended =
      ranks::run_threads(job.request.ranks.count, [&](ranks::Group& group) -> Expected<void> {
        auto own = measure_as_rank(job, group, group.rank() == 0 ? &parent : nullptr, known);
        if (!own) return own.error();
        if (group.rank() == 0) merged = std::move(*own);
        return {};
      });
  if (!ended) return ended.error();
  return merged;
}

Expected<Measurement> measure_in_process(const Job& job, const Messenger& parent) {
  auto backend = make_backend(job.request.backend);
  if (!backend) return backend.error();
  return measure_target(job.target, job.knobs, **backend, job.request.options,
                        progress_to(&parent));
}

Expected<ProfileOutcome> profile(const Job& job) {
  if (job.request.backend == BackendKind::ranks) {
    return ProfileOutcome{.sides = {}, .why_not = "several ranks cannot be profiled together yet"};
  }
  auto backend = make_backend(job.request.backend);
  if (!backend) return backend.error();
  const ProfileJob profiled{.target = job.target,
                            .knobs = job.knobs,
                            .backend = **backend,
                            .level = job.request.profile,
                            .seed = job.request.options.seed};
  ProfileOutcome outcome = profile_target(profiled);
  if (!job.request.trace_path.empty()) {
    outcome.trace_error = write_trace(profiled, job.request.trace_path);
  }
  return outcome;
}

int run_on_target(const Job& job, const Messenger& parent) {
  if (job.request.task == WorkerRequest::Task::profile) {
    const auto outcome = profile(job);
    if (!outcome) return parent.fail(outcome.error().message);
    parent.send_as("profile", to_json(*outcome));
    return 0;
  }
  const auto measurement = job.request.backend == BackendKind::ranks
                               ? measure_as_threads(job, parent)
                               : measure_in_process(job, parent);
  if (!measurement) return parent.fail(measurement.error().message);
  parent.send_as("measurement", to_json(*measurement));
  return 0;
}

int send_ceilings(const Ceilings& ceilings, const Messenger& parent) {
  parent.send_as("ceilings", {{"ceilings", to_json(ceilings)}});
  return 0;
}

int run_ceilings(const WorkerRequest& request, const Messenger& parent) {
  const auto ceilings = measure_ceilings(
      request.backend, read_machine(request.backend == BackendKind::cuda),
      [&](const std::string& name) {
        parent.send_as("progress", {{"phase", name}, {"side", ""}, {"ratio", 0}, {"blocks", 0}});
      });
  if (!ceilings) return parent.fail(ceilings.error().message);
  return send_ceilings(*ceilings, parent);
}

Expected<Job> job_of(const Catalog& catalog, const WorkerRequest& request) {
  const Target* target = catalog.find(request.target);
  if (!target) return Error{"worker knows no target " + request.target};
  auto knobs =
      Knobs::defaults(target->pair.knobs, request.backend).with(target->pair.knobs, request.knobs);
  if (!knobs) return knobs.error();
  return Job{target->without(request.backend, request.without), *knobs, request};
}

/// Rank 0's way to the parent. The token's file goes before any side's code runs.
Expected<Messenger> messenger_of_first_rank(const WorkerRequest& request) {
  const auto token = read_file(request.token_path);
  ::unlink(request.token_path.c_str());
  if (!token) return token.error();
  const auto pipe = ranks::open_message_pipe();
  if (!pipe) return pipe.error();
  Messenger parent(*pipe);
  parent.set_token(*token);
  return parent;
}

/// One of the processes that mpirun started. What goes wrong on a rank other than the first is in
/// the log, and ends the job.
int run_as_mpi_rank(const Catalog& catalog, const WorkerRequest& request) {
  const auto in_log = [](int rank, const std::string& reason) {
    std::fprintf(stderr, "rank %d: %s\n", rank, reason.c_str());
    return 1;
  };
  auto group = ranks::join();
  if (!group) return in_log(ranks::started_as().rank, group.error().message);
  const int rank = (*group)->rank();
  std::optional<Messenger> parent;
  if (rank == 0) {
    auto made = messenger_of_first_rank(request);
    if (!made) return in_log(rank, made.error().message);
    parent.emplace(std::move(*made));
  }
  const auto complain = [&](const std::string& reason) {
    return parent ? parent->fail(reason) : in_log(rank, reason);
  };
  if (const auto ready = (*group)->barrier(); !ready) return complain(ready.error().message);
  if ((*group)->size() != request.ranks.count) {
    return complain(fmt::format("{} ranks were asked for, and the job has {}", request.ranks.count,
                                (*group)->size()));
  }
  try {
    const auto job = job_of(catalog, request);
    if (!job) return complain(job.error().message);
    if (request.task == WorkerRequest::Task::profile) {
      if (parent) parent->send_as("profile", to_json(*profile(*job)));
      return 0;
    }
    const auto measurement = measure_as_rank(*job, **group, parent ? &*parent : nullptr);
    if (!measurement) return complain(measurement.error().message);
    if (parent) parent->send_as("measurement", to_json(*measurement));
    return 0;
  } catch (const std::exception& error) {
    return complain(error.what());
  }
}

}  // namespace

int worker_main(const Catalog& catalog, char* request_json) {
  WorkerRequest request;
  try {
    request = worker_request_from_json(json::parse(request_json));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "not a request: %s\n", error.what());
    return 2;
  }
  std::memset(request_json, ' ', std::strlen(request_json));
  // Not by what the environment says: a worker of one process may well run below somebody's mpirun.
  const bool under_mpi = request.backend == BackendKind::ranks && request.ranks.transport == kMpi;
  if (under_mpi) return run_as_mpi_rank(catalog, request);
  Messenger parent(kMessageFd);
  parent.set_token(request.token);
  try {
    if (request.task == WorkerRequest::Task::ceilings) return run_ceilings(request, parent);
    if (request.task == WorkerRequest::Task::disk_ceiling) {
      return send_ceilings(measure_disk_ceiling(read_machine(false)), parent);
    }
    const auto job = job_of(catalog, request);
    return job ? run_on_target(*job, parent) : parent.fail(job.error().message);
  } catch (const std::bad_alloc&) {
    return parent.fail("out of memory");
  } catch (const std::exception& error) {
    return parent.fail(error.what());
  }
}

}  // namespace gauntlet::lab::inline run
