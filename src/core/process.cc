#include "core/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

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

std::int64_t file_bytes(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 ? status.st_size : 0;
}

[[noreturn]] void become_child(const ChildOptions& options, std::vector<char*>& argv, int pipe_fd,
                               pid_t parent) {
  setpgid(0, 0);
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
  const pid_t child = fork();
  if (child < 0) {
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    return Error{std::string("cannot start a process: ") + std::strerror(errno)};
  }
  if (child == 0) become_child(options, argv, pipe_fds[1], parent);
  setpgid(child, child);
  close(pipe_fds[1]);

  LineReader reader(pipe_fds[0], options.on_line);
  ChildOutcome outcome;
  const auto kill_as = [&](ChildOutcome::End end) {
    outcome.end = end;
    kill(-child, SIGKILL);
  };
  bool killed = false, pipe_open = true;
  int status = 0;
  while (true) {
    if (pipe_open) {
      pollfd poll_fd{.fd = pipe_fds[0], .events = POLLIN, .revents = 0};
      if (poll(&poll_fd, 1, kPollMs) > 0) pipe_open = reader.read_some();
    } else {
      poll(nullptr, 0, kPollMs);
    }
    outcome.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const std::int64_t resident = resident_bytes(child);
    outcome.peak_resident_bytes = std::max(outcome.peak_resident_bytes, resident);
    if (!killed) {
      killed = true;
      if (options.max_resident_bytes > 0 && resident > options.max_resident_bytes) {
        kill_as(ChildOutcome::End::out_of_memory);
      } else if (file_bytes(options.log_path) > log_limit) {
        kill_as(ChildOutcome::End::log_too_large);
      } else if (outcome.seconds > options.timeout_s) {
        kill_as(ChildOutcome::End::timed_out);
      } else if (options.interrupt && options.interrupt->load()) {
        kill_as(ChildOutcome::End::interrupted);
      } else {
        killed = false;
      }
    }
    if (waitpid(child, &status, WNOHANG) == child) break;
  }
  // What the child wrote before it ended may still be in the pipe, but no more than the pipe holds:
  // a grandchild that left the process group may keep it open and go on writing.
  kill(-child, SIGKILL);
  pollfd poll_fd{.fd = pipe_fds[0], .events = POLLIN, .revents = 0};
  const std::int64_t last_byte = reader.bytes_read() + fcntl(pipe_fds[0], F_GETPIPE_SZ);
  while (pipe_open && reader.bytes_read() < last_byte && poll(&poll_fd, 1, 0) > 0) {
    pipe_open = reader.read_some();
  }
  close(pipe_fds[0]);
  if (!killed) {
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
