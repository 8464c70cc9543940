#include "lab/doctor/ranks.h"

#include <fmt/format.h>

#include "core/ranks/start.h"
#include "core/text/text.h"
#include "lab/doctor/checks.h"

namespace gauntlet::lab::doctor {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
/// What OpenMPI maps for a rank in shared memory by default, rounded up.
constexpr std::int64_t kSharedBytesOfRank = 16 * kMiB;

Item item(const char* name) { return {"ranks", name}; }

std::string bytes_text(std::int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

Finding check_mpirun(const RankMachine& machine) {
  if (!machine.mpirun) {
    return item("mpirun").fail(machine.mpirun.error().message, ranks::kOpenMpiPackages);
  }
  if (machine.mpirun_version.find("Open MPI") == std::string::npos &&
      machine.mpirun_version.find("OpenRTE") == std::string::npos) {
    return item("mpirun").warn(
        fmt::format("{} says '{}': ranks are tried with OpenMPI 4 and 5 alone", *machine.mpirun,
                    machine.mpirun_version),
        ranks::kOpenMpiPackages);
  }
  return item("mpirun").ok(fmt::format("{}, {}", *machine.mpirun, machine.mpirun_version));
}

Finding check_library(const RankMachine& machine) {
  if (machine.library) return item("libmpi").ok(*machine.library + " opens");
  return item("libmpi").fail(machine.library.error().message, ranks::kOpenMpiPackages);
}

Finding check_user(const RankMachine& machine) {
  if (!machine.is_root) return item("user").ok("is not root");
  return item("user").warn("mpirun refuses root unless it is told to",
                           "mpirun --allow-run-as-root, or another user");
}

Finding check_cpus(const RankMachine& machine) {
  const std::string reason = fmt::format("{} for all ranks and their threads", machine.cpus);
  if (machine.cpus < 2) {
    return item("CPUs").warn(reason + ": two ranks take turns on one",
                             "for correctness alone: mpirun --oversubscribe --bind-to none");
  }
  return item("CPUs").ok(reason +
                         fmt::format("; more than {} ranks need mpirun --oversubscribe, and take "
                                     "turns",
                                     machine.cpus));
}

Finding check_binding(const RankMachine& machine) {
  if (machine.cpus >= machine.online_cpus) {
    return item("binding").ok(
        "this process may use all CPUs; mpirun binds two ranks to a core "
        "each: --bind-to none, or --map-by slot:PE=N, gives them more");
  }
  return item("binding").warn(
      fmt::format("this process may use {} of {} CPUs", machine.cpus, machine.online_cpus),
      "start mpirun from a shell that is not bound, or give the cgroup more CPUs");
}

Finding check_shared_memory(const RankMachine& machine) {
  if (!machine.shared_memory) {
    return item("shared memory")
        .fail(machine.shared_folder + " is not there", "mount a tmpfs there");
  }
  const std::int64_t free = machine.shared_memory->free_bytes;
  const std::string reason = fmt::format("{} free in {}, {} for a rank", bytes_text(free),
                                         machine.shared_folder, bytes_text(kSharedBytesOfRank));
  if (free < 2 * kSharedBytesOfRank) {
    return item("shared memory")
        .fail(reason, "docker run --shm-size=1g, or a volume with medium: Memory");
  }
  if (free < machine.cpus * kSharedBytesOfRank) {
    return item("shared memory")
        .warn(reason, "docker run --shm-size=1g, or a volume with medium: Memory");
  }
  return item("shared memory").ok(reason);
}

Finding check_single_copy(const RankMachine& machine) {
  const auto scope = machine.files.number("/proc/sys/kernel/yama/ptrace_scope");
  if (scope.value_or(0) == 0) return item("single copy").ok("ranks may read each other's memory");
  return item("single copy")
      .warn(fmt::format("kernel.yama.ptrace_scope is {}: large messages are copied twice", *scope),
            "sysctl kernel.yama.ptrace_scope=0, where the machine is yours alone");
}

Finding check_session(const RankMachine& machine) {
  if (machine.session_is_writable) {
    return item("session folder").ok(machine.session_folder + " can be written");
  }
  return item("session folder")
      .fail(machine.session_folder + " cannot be written",
            "TMPDIR=... to a folder of a short name that can");
}

Finding check_host(const RankMachine& machine) {
  if (machine.host_resolves) return item("host name").ok(machine.host + " has an address");
  return item("host name")
      .warn(machine.host + " has no address: jobs over several hosts need one",
            "a line in /etc/hosts, or DNS");
}

Finding check_watch(const RankMachine& machine) {
  if (machine.sees_processes) {
    return item("lost ranks").ok("are seen at once (pidfd_open), on this host");
  }
  return item("lost ranks")
      .warn(
          "a sandbox or an old kernel withholds pidfd_open: a lost rank is seen at "
          "--rank-timeout",
          "Linux 5.3 or later, and a seccomp profile that lets pidfd_open pass");
}

Finding check_locked(const RankMachine& machine) {
  if (machine.locked_bytes < 0) return item("locked memory").ok("unlimited");
  return item("locked memory")
      .ok(fmt::format("{}: enough on one host; RDMA between hosts wants ulimit -l unlimited",
                      bytes_text(machine.locked_bytes)));
}

}  // namespace

std::vector<Finding> check_ranks(const RankMachine& machine) {
  return {check_mpirun(machine),      check_library(machine), check_user(machine),
          check_cpus(machine),        check_binding(machine), check_shared_memory(machine),
          check_single_copy(machine), check_session(machine), check_host(machine),
          check_watch(machine),       check_locked(machine)};
}

}  // namespace gauntlet::lab::doctor
