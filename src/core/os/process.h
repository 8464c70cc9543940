// Running a child under watch: its own session, a time limit, a memory limit, its output in a log
// file and its messages, line by line, through a pipe.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/expected.h"

namespace gauntlet {

struct ChildOptions {
  std::vector<std::string> argv;
  std::string log_path;  // stdout and stderr; appended
  double timeout_s = 60;
  /// Seconds between SIGTERM and SIGKILL for a child that is ended; 0: killed at once. mpirun needs
  /// one or two, to take its ranks' shared memory and its folder in /tmp away.
  double grace_s = 0;
  /// Of the child and its descendants together; 0: none. Resident, not address space: CUDA reserves
  /// terabytes of that.
  std::int64_t max_resident_bytes = 0;
  std::int64_t max_log_bytes = std::int64_t{64}
                               << 20;  // a child that prints without end must not fill the disk
  const std::atomic<bool>* interrupt = nullptr;
  std::function<void(const std::string& line)> on_line;  // messages from kMessageFd
};

/// The descriptor on which a child finds the pipe to its parent.
inline constexpr int kMessageFd = 3;

struct ChildOutcome {
  enum class End { exited, signaled, timed_out, out_of_memory, log_too_large, interrupted };
  End end = End::exited;
  int code = 0;                          // exit code or signal number
  std::int64_t peak_resident_bytes = 0;  // of the child and its descendants together
  double seconds = 0;
};

/// When this returns, the child and what it started have ended: its session, and descendants of
/// other sessions that were still below it. The calling process becomes the one that orphans below
/// it fall to (PR_SET_CHILD_SUBREAPER), so that none stays behind as a zombie.
Expected<ChildOutcome> run_child(const ChildOptions& options);

/// "segmentation fault (SIGSEGV)"
std::string signal_text(int signal);

}  // namespace gauntlet
