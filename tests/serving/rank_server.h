// `gauntlet serve` as the ranks of one job under mpirun, each with one thread.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/ranks/mpi_group.h"
#include "core/ranks/start.h"
#include "tests/rank_job.h"

namespace gauntlet::tests {

/// Why nothing can be started under mpirun here; empty: it can.
inline std::string no_mpi_reason() {
  if (const auto library = ranks::find_mpi_library(); !library) return library.error().message;
  if (const auto mpirun = ranks::find_mpirun(); !mpirun) return mpirun.error().message;
  return "";
}

class RankServer {
 public:
  /// Listens when this returns; throws when it does not.
  RankServer(const std::string& gauntlet, int ranks, const std::vector<std::string>& options,
             const std::string& backend = "cpu")
      : job_(ranks, command(gauntlet, options, backend)) {
    for (int i = 0; i < 2400 && port_ == 0; ++i) {
      const std::string printed = job_.program().printed();
      if (const std::size_t end = printed.find('\n'); end != std::string::npos) {
        const std::size_t colon = printed.rfind(':', end);
        port_ = static_cast<std::uint16_t>(std::strtoul(printed.c_str() + colon + 1, nullptr, 10));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
    if (port_ == 0) throw std::runtime_error("the server never said where it listens");
  }

  std::uint16_t port() const { return port_; }
  RankJob& job() { return job_; }

 private:
  static std::vector<std::string> command(const std::string& gauntlet,
                                          const std::vector<std::string>& options,
                                          const std::string& backend) {
    std::vector<std::string> argv = {gauntlet,    "serve", "--port",    "0",
                                     "--backend", backend, "--threads", "1"};
    argv.insert(argv.end(), options.begin(), options.end());
    return argv;
  }

  RankJob job_;
  std::uint16_t port_ = 0;
};

}  // namespace gauntlet::tests
