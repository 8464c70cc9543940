// Running the real binary from a test: what it prints, how it ends, and folders that vanish
// afterwards.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace gauntlet::tests {

/// A folder of its own, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::filesystem::path path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

struct Outcome {
  int code = 0;  // exit code, or minus the signal that ended it
  std::string out;
  std::string err;
};

/// A running program with its output in files of a temporary folder.
class Program {
 public:
  /// argv[0] is where the program was built: it may have been carried elsewhere with the one that
  /// calls this. `folder` becomes its current folder where given. One that cannot be started ends
  /// with code 127 and says why.
  explicit Program(std::vector<std::string> argv, const std::string& folder = "");
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void kill_now();
  /// Asks it to end (SIGTERM).
  void terminate();
  /// As the keyboard does (SIGINT).
  void interrupt();
  /// False as long as an interrupt would just end it.
  bool handles_interrupts() const;
  /// What it has printed so far.
  std::string printed() const;
  Outcome wait();

 private:
  TemporaryFolder output_;
  pid_t pid_ = -1;
};

Outcome run_program(std::vector<std::string> argv, const std::string& folder = "");

std::string read_text(const std::filesystem::path& path);

}  // namespace gauntlet::tests
