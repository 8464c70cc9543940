#include "cli/rank_doctor.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include "cli/rank_times.h"
#include "core/os/threads.h"
#include "core/ranks/mpi_group.h"
#include "core/ranks/start.h"
#include "core/text/text.h"
#include "lab/doctor/checks.h"

namespace gauntlet::cli {
namespace {

using lab::doctor::Finding;
using lab::doctor::Item;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
/// What OpenMPI maps for a rank in shared memory by default, rounded up.
constexpr std::int64_t kSharedBytesOfRank = 16 * kMiB;

Item item(const char* name) { return {"ranks", name}; }

std::string bytes_text(std::int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

/// The first line of what a command prints.
std::string first_line_of(const std::string& command) {
  std::string line;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return line;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF && c != '\n';) line += static_cast<char>(c);
  while (std::fgetc(pipe) != EOF) {
  }
  ::pclose(pipe);
  return line;
}

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

RankMachine this_rank_machine() {
  RankMachine machine;
  machine.cpus = static_cast<int>(allowed_cpus().size());
  machine.online_cpus = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  machine.is_root = ::geteuid() == 0;
  machine.mpirun = ranks::find_mpirun();
  if (machine.mpirun) {
    machine.mpirun_version = first_line_of("'" + *machine.mpirun + "' --version 2>&1");
  }
  machine.library = ranks::find_mpi_library();
  struct statvfs shared{};
  if (::statvfs(machine.shared_folder.c_str(), &shared) == 0) {
    const auto unit = static_cast<std::int64_t>(shared.f_frsize);
    machine.shared_memory = {.total_bytes = unit * static_cast<std::int64_t>(shared.f_blocks),
                             .free_bytes = unit * static_cast<std::int64_t>(shared.f_bavail)};
  }
  std::error_code failed;
  machine.session_folder = std::filesystem::temp_directory_path(failed).string();
  machine.session_is_writable = ::access(machine.session_folder.c_str(), W_OK | X_OK) == 0;
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  machine.host = name;
  addrinfo* found = nullptr;
  machine.host_resolves = ::getaddrinfo(name, nullptr, nullptr, &found) == 0;
  if (found != nullptr) ::freeaddrinfo(found);
  const auto handle = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  machine.sees_processes = handle >= 0;
  if (handle >= 0) ::close(handle);
  rlimit locked{};
  if (::getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY) {
    machine.locked_bytes = static_cast<std::int64_t>(locked.rlim_cur);
  }
  return machine;
}

std::vector<Finding> check_ranks(const RankMachine& machine) {
  return {check_mpirun(machine),      check_library(machine), check_user(machine),
          check_cpus(machine),        check_binding(machine), check_shared_memory(machine),
          check_single_copy(machine), check_session(machine), check_host(machine),
          check_watch(machine),       check_locked(machine)};
}

namespace {

/// As a rank under mpirun: sums are timed, and rank 0 says how long they take.
Expected<std::vector<Finding>> measure_as_rank() {
  auto group = ranks::join();
  if (!group) return group.error();
  const auto times = time_sums(**group);
  if (!times) return times.error();
  std::vector<Finding> findings;
  if ((*group)->rank() > 0) return findings;
  if (const std::string file = times_file(); !file.empty()) {
    if (const auto written = write_times(file, *times); !written) return written.error();
    return findings;
  }
  for (const SumTime& one : *times) {
    findings.push_back(
        {.area = "ranks",
         .name = fmt::format("sum of {} bytes", one.bytes),
         .level = Finding::Level::ok,
         .reason = fmt::format("{:.1f} us by {} ranks of the engine, {:.1f} us by MPI_Allreduce",
                               one.group_us, (*group)->size(), one.mpi_us),
         .fix = ""});
  }
  return findings;
}

Expected<std::vector<Finding>> look_at_ranks(const std::string& file, const std::string& program) {
  if (ranks::started_as().by != ranks::Start::By::none) return measure_as_rank();
  const RankMachine machine = this_rank_machine();
  std::vector<Finding> findings = check_ranks(machine);
  if (file.empty()) return findings;
  constexpr int kRanks = 2;
  const auto all = compare_settings(program, kRanks);
  if (!all) return all.error();
  std::ofstream out(file);
  out << presets_text(*all, fmt::format("{} ranks on {}, {} CPUs, {}", kRanks, machine.host,
                                        machine.cpus, machine.mpirun_version));
  out.close();
  if (!out) return Error{fmt::format("{} cannot be written", file)};
  findings.push_back(
      item("presets").ok(file + " has what was measured, and what is worth setting"));
  return findings;
}

}  // namespace

void add_rank_doctor(CLI::App& app, Context& context) {
  auto file = std::make_shared<std::string>();
  CLI::App* command = app.get_subcommand("doctor");
  command->add_flag_callback(
      "--ranks",
      [file, &context] {
        context.checks = [file, &context] { return look_at_ranks(*file, context.program); };
      },
      "check what a job of several ranks needs instead; under mpirun, time its sums");
  command
      ->add_option("--ranks-env", *file,
                   "with --ranks: also measure OpenMPI's settings, and write those worth setting "
                   "as lines for an environment")
      ->option_text("FILE")
      ->needs("--ranks");
}

}  // namespace gauntlet::cli
