#include "core/os/process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "core/os/process_tree.h"
#include "core/os/system_files.h"

namespace gauntlet {
namespace {

constexpr int kPollMs = 10;
constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;

std::int64_t resident_bytes(pid_t pid) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/statm", pid);
  std::FILE* file = std::fopen(path, "r");
  if (!file) return 0;
  long long total = 0, resident = 0;
  const int fields = std::fscanf(file, "%lld %lld", &total, &resident);
  std::fclose(file);
  return fields == 2 ? resident * sysconf(_SC_PAGESIZE) : 0;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The child and everything it started.
class Family {
 public:
  explicit Family(pid_t child) : child_(child) {}

  /// The child's memory now, and that of the others as of the last look at all processes. A look
  /// costs up to milliseconds, so that looking is kept to a hundredth of the time: what is being
  /// measured has the machine to itself.
  std::int64_t resident_bytes_now() {
    const auto begin = std::chrono::steady_clock::now();
    if (begin >= next_look_) {
      others_bytes_ = 0;
      for (const ProcessEntry& member : look()) {
        if (member.pid != child_) others_bytes_ += member.resident_bytes;
      }
      next_look_ = begin + std::max<std::chrono::steady_clock::duration>(
                               kLookInterval, 100 * (std::chrono::steady_clock::now() - begin));
    }
    return resident_bytes(child_) + others_bytes_;
  }

  void kill_all() {
    for (const ProcessEntry& member : look()) kill(member.pid, SIGKILL);
  }

  /// After the child was waited for: ends what it left behind and takes the zombies away. A process
  /// that forks while it is looked for is found by the next look.
  void end_others() {
    const auto begin = std::chrono::steady_clock::now();
    while (seconds_since(begin) < kEndSeconds) {
      bool any = false;
      for (const ProcessEntry& member : look()) {
        if (!member.is_zombie()) {
          kill(member.pid, SIGKILL);
          any = true;
        } else if (member.parent == getpid()) {
          waitpid(member.pid, nullptr, WNOHANG);
        }
      }
      if (!any) return;
      poll(nullptr, 0, 1);
    }
  }

 private:
  static constexpr auto kLookInterval = std::chrono::milliseconds(250);
  // A process in an uninterruptible sleep cannot be waited out.
  static constexpr double kEndSeconds = 5;

  const std::vector<ProcessEntry>& look() {
    seen_ = process_tree(child_, read_processes(SystemFiles()), seen_);
    return seen_;
  }

  pid_t child_;
  std::vector<ProcessEntry> seen_;
  std::int64_t others_bytes_ = 0;
  std::chrono::steady_clock::time_point next_look_ =
      std::chrono::steady_clock::now() + kLookInterval;
};

std::int64_t file_bytes(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_size : 0;
}

[[noreturn]] void become_child(const ChildOptions& options, std::vector<char*>& argv, int pipe_fd,
                               pid_t parent) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  const int log = open(options.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (log < 0 || null < 0) _exit(127);
  dup2(null, 0);
  dup2(log, 1);
  dup2(log, 2);
  if (pipe_fd == kMessageFd) {
    fcntl(kMessageFd, F_SETFD, 0);
  } else {
    dup2(pipe_fd, kMessageFd);
  }
  // Nothing else that this process has open is the child's business.
  close_range(kMessageFd + 1, ~0u, CLOSE_RANGE_CLOEXEC);
  execv(argv[0], argv.data());
  std::fprintf(stderr, "cannot start %s: %s\n", argv[0], std::strerror(errno));
  _exit(127);
}

/// Splits what arrives on a pipe into lines.
class LineReader {
 public:
  LineReader(int fd, const std::function<void(const std::string&)>& on_line)
      : fd_(fd), on_line_(on_line) {}

  std::int64_t bytes_read() const { return bytes_read_; }

  /// False at end of file.
  bool read_some() {
    char chunk[65536];
    const ssize_t count = read(fd_, chunk, sizeof(chunk));
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    if (count == 0) return false;
    bytes_read_ += count;
    pending_.append(chunk, static_cast<std::size_t>(count));
    std::size_t begin = 0;
    for (std::size_t end; (end = pending_.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      if (on_line_) on_line_(pending_.substr(begin, end - begin));
    }
    pending_.erase(0, begin);
    if (pending_.size() > kMaxLineBytes) pending_.clear();
    return true;
  }

 private:
  int fd_;
  const std::function<void(const std::string&)>& on_line_;
  std::string pending_;
  std::int64_t bytes_read_ = 0;
};

}  // namespace

Expected<ChildOutcome> run_child(const ChildOptions& options) {
  check(!options.argv.empty(), "a child needs a program");
  std::vector<char*> argv;
  for (const std::string& arg : options.argv) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) {
    return Error{std::string("cannot make a pipe: ") + std::strerror(errno)};
  }
  const std::int64_t log_limit = file_bytes(options.log_path) + options.max_log_bytes;
  const auto begin = std::chrono::steady_clock::now();
  const pid_t parent = getpid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t child = fork();
  if (child < 0) {
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    return Error{std::string("cannot start a process: ") + std::strerror(errno)};
  }
  if (child == 0) become_child(options, argv, pipe_fds[1], parent);
  close(pipe_fds[1]);

  LineReader reader(pipe_fds[0], options.on_line);
  ChildOutcome outcome;
  Family family(child);
  bool ended = false, killed = false, pipe_open = true;
  double kill_at_s = 0;
  const auto end_as = [&](ChildOutcome::End end) {
    outcome.end = end;
    ended = true;
    kill_at_s = outcome.seconds + options.grace_s;
    // What the child started is the child's to end while it is asked politely.
    if (options.grace_s > 0) kill(child, SIGTERM);
  };
  int status = 0;
  while (true) {
    if (pipe_open) {
      pollfd poll_fd{.fd = pipe_fds[0], .events = POLLIN, .revents = 0};
      if (poll(&poll_fd, 1, kPollMs) > 0) pipe_open = reader.read_some();
    } else {
      poll(nullptr, 0, kPollMs);
    }
    outcome.seconds = seconds_since(begin);
    const std::int64_t resident = family.resident_bytes_now();
    outcome.peak_resident_bytes = std::max(outcome.peak_resident_bytes, resident);
    if (!ended) {
      if (options.max_resident_bytes > 0 && resident > options.max_resident_bytes) {
        end_as(ChildOutcome::End::out_of_memory);
      } else if (file_bytes(options.log_path) > log_limit) {
        end_as(ChildOutcome::End::log_too_large);
      } else if (outcome.seconds > options.timeout_s) {
        end_as(ChildOutcome::End::timed_out);
      } else if (options.interrupt && options.interrupt->load()) {
        end_as(ChildOutcome::End::interrupted);
      }
    }
    if (ended && !killed && outcome.seconds >= kill_at_s) {
      family.kill_all();
      killed = true;
    }
    if (waitpid(child, &status, WNOHANG) == child) break;
  }
  family.end_others();
  // What the child wrote before it ended may still be in the pipe, but no more than the pipe holds:
  // a process that escaped to another session may keep it open and go on writing.
  pollfd poll_fd{.fd = pipe_fds[0], .events = POLLIN, .revents = 0};
  const std::int64_t last_byte = reader.bytes_read() + fcntl(pipe_fds[0], F_GETPIPE_SZ);
  while (pipe_open && reader.bytes_read() < last_byte && poll(&poll_fd, 1, 0) > 0) {
    pipe_open = reader.read_some();
  }
  close(pipe_fds[0]);
  if (!ended) {
    outcome.end = WIFSIGNALED(status) ? ChildOutcome::End::signaled : ChildOutcome::End::exited;
  }
  outcome.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return outcome;
}

std::string signal_text(int signal) {
  const char* name = sigabbrev_np(signal);
  const char* text = sigdescr_np(signal);
  std::string result = text ? text : "signal";
  if (!result.empty()) result[0] = static_cast<char>(std::tolower(result[0]));
  return result + " (SIG" + (name ? name : std::to_string(signal)) + ")";
}

}  // namespace gauntlet
