// This program as a server of gauntlet-tiny, in a process of its own, and clients that stay
// connected.
#pragma once
#include <memory>
#include <vector>

#include "tests/doubles/doubles/served_load/pair.h"
#include "tests/serving/http_client.h"
#include "tests/serving/server_process.h"

namespace gauntlet::doubles::served_load {

class Server {
 public:
  /// Starts it, and connects so many clients, where that has not been done.
  void start(std::int64_t clients);
  /// Asks for all answers, at most `in_flight` of them at a time.
  void answer(const Params& p, std::int32_t* answers, std::int64_t in_flight);

 private:
  std::unique_ptr<tests::ServerProcess> process_;
  std::vector<std::unique_ptr<tests::Socket>> clients_;
};

}  // namespace gauntlet::doubles::served_load
