// `gauntlet serve` as a process of its own, and what its metrics say of it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/program.h"

namespace gauntlet::tests {

struct ServerState {
  double num_running = 0;
  double num_waiting = 0;
  double kv_usage = 0;
  double preemptions = 0;
  double resident_bytes = 0;
  double open_files = 0;

  bool is_idle() const { return num_running == 0 && num_waiting == 0 && kv_usage == 0; }
};

/// The value of a sample, whatever its labels; 0 where there is none.
double metric(const std::string& text, const std::string& name);
ServerState read_state(const std::string& metrics_text);

class ServerProcess {
 public:
  /// Listens when this returns; throws when it does not.
  ServerProcess(const std::string& gauntlet, const std::vector<std::string>& options);

  std::uint16_t port() const { return port_; }
  pid_t process() const { return process_; }
  std::optional<ServerState> state() const;
  /// Asks until it is idle with no more than so many files open, or for too long: what it said
  /// last.
  ServerState wait_until_idle(double most_files = 1e9) const;
  /// Makes it read its keys again (SIGHUP).
  void hang_up() const;
  /// Drains it. Empty when it ended with its books balanced; otherwise what was wrong.
  std::string end();
  /// After its end: one JSON object per request.
  const std::string& log() const { return log_; }

 private:
  Program program_;
  pid_t process_ = 0;
  std::uint16_t port_ = 0;
  std::string log_;
};

}  // namespace gauntlet::tests
