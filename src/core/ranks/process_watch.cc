#include "core/ranks/process_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <span>

#include "core/os/files.h"

namespace gauntlet::ranks {
namespace {

/// Processes with the same place see each other by number.
struct Identity {
  std::uint64_t boot = 0;
  std::uint64_t pid_namespace = 0;
  std::int64_t process = 0;
  bool same_place(const Identity& other) const {
    return boot == other.boot && pid_namespace == other.pid_namespace;
  }
};

Identity own_identity() {
  Identity own{.process = ::getpid()};
  const auto boot = read_file("/proc/sys/kernel/random/boot_id");
  own.boot = std::hash<std::string>()(boot ? *boot : std::string());
  struct stat status{};
  if (::stat("/proc/self/ns/pid", &status) == 0) own.pid_namespace = status.st_ino;
  return own;
}

/// Readable once the process has ended; -1 where the kernel or a sandbox does not have it.
int open_process(std::int64_t process) {
  return static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(process), 0));
}

bool is_readable(int handle, int wait_ms) {
  pollfd one{.fd = handle, .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, wait_ms) > 0;
}

}  // namespace

std::string ProcessWatch::Ended::text() const {
  return fmt::format("its process {} is gone", process);
}

Expected<std::unique_ptr<ProcessWatch>> ProcessWatch::of(Group& group) {
  const Identity own = own_identity();
  std::vector<Identity> all(static_cast<std::size_t>(group.size()));
  const auto told =
      group.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  if (!told) return told.error();
  std::vector<Watched> watched;
  for (int rank = 0; rank < group.size(); ++rank) {
    const Identity& other = all[static_cast<std::size_t>(rank)];
    if (!own.same_place(other) || own.process == other.process) continue;
    const int handle = open_process(other.process);
    if (handle < 0) continue;
    watched.push_back(
        {.who = {.rank = rank, .process = static_cast<pid_t>(other.process)}, .handle = handle});
  }
  // Until everyone has its handles, a number cannot have gone to another process.
  if (const auto met = group.barrier(); !met) {
    for (const Watched& one : watched) ::close(one.handle);
    return met.error();
  }
  return std::unique_ptr<ProcessWatch>(new ProcessWatch(std::move(watched)));
}

ProcessWatch::~ProcessWatch() {
  for (const Watched& one : watched_) ::close(one.handle);
}

std::vector<ProcessWatch::Ended> ProcessWatch::ended() const {
  std::vector<Ended> ended;
  for (const Watched& one : watched_) {
    if (is_readable(one.handle, 0)) ended.push_back(one.who);
  }
  return ended;
}

const ProcessWatch::Watched* ProcessWatch::find(int rank) const {
  const auto found =
      std::ranges::find_if(watched_, [&](const Watched& one) { return one.who.rank == rank; });
  return found == watched_.end() ? nullptr : &*found;
}

bool ProcessWatch::watches(int rank) const { return find(rank) != nullptr; }

bool ProcessWatch::wait_for(int rank, double seconds) const {
  const Watched* one = find(rank);
  return one != nullptr && is_readable(one->handle, static_cast<int>(seconds * 1e3));
}

}  // namespace gauntlet::ranks
