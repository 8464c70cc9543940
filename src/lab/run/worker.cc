#include "lab/run/worker.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <random>

#include "core/process.h"
#include "lab/ceilings/ceilings.h"

namespace gauntlet::lab::inline run {
namespace {

using nlohmann::json;

/// The way to the parent. A side shares this process and may write into any descriptor it finds;
/// what does not carry the token is not believed.
class Messenger {
 public:
  Messenger() {
    std::random_device device;
    constexpr int kFirst = 64, kRange = 512;
    fd_ = fcntl(kMessageFd, F_DUPFD_CLOEXEC, kFirst + static_cast<int>(device() % kRange));
    if (fd_ >= 0) close(kMessageFd);
    if (fd_ < 0) fd_ = kMessageFd;
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
  int fd_ = kMessageFd;
  std::string token_;
};

int run_on_target(const Catalog& catalog, const WorkerRequest& request, const Messenger& parent) {
  const Target* target = catalog.find(request.target);
  if (!target) return parent.fail("worker knows no target " + request.target);
  auto knobs =
      Knobs::defaults(target->pair.knobs, request.backend).with(target->pair.knobs, request.knobs);
  if (!knobs) return parent.fail(knobs.error().message);
  auto backend = make_backend(request.backend);
  if (!backend) return parent.fail(backend.error().message);
  if (request.task == WorkerRequest::Task::profile) {
    const std::uint64_t seed = request.options.seed;
    ProfileOutcome outcome = profile_target(*target, *knobs, **backend, request.profile, seed);
    if (!request.trace_path.empty()) {
      outcome.trace_error = write_trace(*target, *knobs, **backend, seed, request.trace_path);
    }
    parent.send_as("profile", to_json(outcome));
    return 0;
  }
  const Measurement measurement = measure_target(
      *target, *knobs, **backend, request.options, [&](const MeasureProgress& p) {
        parent.send_as(
            "progress",
            {{"phase", p.phase}, {"side", p.side}, {"ratio", p.ratio}, {"blocks", p.blocks}});
      });
  parent.send_as("measurement", to_json(measurement));
  return 0;
}

int run_ceilings(const WorkerRequest& request, const Messenger& parent) {
  const auto ceilings = measure_ceilings(
      request.backend, read_machine(request.backend == BackendKind::cuda),
      [&](const std::string& name) {
        parent.send_as("progress", {{"phase", name}, {"side", ""}, {"ratio", 0}, {"blocks", 0}});
      });
  if (!ceilings) return parent.fail(ceilings.error().message);
  parent.send_as("ceilings", {{"ceilings", to_json(*ceilings)}});
  return 0;
}

}  // namespace

int worker_main(const Catalog& catalog, char* request_json) {
  Messenger parent;
  try {
    const WorkerRequest request = worker_request_from_json(json::parse(request_json));
    std::memset(request_json, ' ', std::strlen(request_json));
    parent.set_token(request.token);
    return request.task == WorkerRequest::Task::ceilings
               ? run_ceilings(request, parent)
               : run_on_target(catalog, request, parent);
  } catch (const std::bad_alloc&) {
    return parent.fail("out of memory");
  } catch (const std::exception& error) {
    return parent.fail(error.what());
  }
}

}  // namespace gauntlet::lab::inline run
