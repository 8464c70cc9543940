// The client: all streams on the calling thread, each a coroutine. Open loops send by the clock,
// whatever the server does; a closed loop sends when an answer is in.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/expected.h"
#include "load/http/url.h"
#include "load/results/metrics.h"
#include "load/workload/arrivals.h"
#include "load/workload/prompts.h"
#include "load/workload/workload.h"

namespace gauntlet::load::inline http {

enum class Certificates { verified, any };

struct ClientConfig {
  Url url;
  std::string api_key;
  Certificates certificates = Certificates::verified;
  double timeout_s = 600;  // of a request, from being sent to its end
};

struct Progress {
  std::int64_t num_sent = 0;
  std::int64_t num_done = 0;
  std::int64_t num_failed = 0;
  double elapsed_s = 0;
};

struct RunOptions {
  ArrivalSpec arrivals;
  WorkloadSpec workload;
  RequestForm form;
  PromptSource prompts;
  std::int64_t num_requests = 0;  // after the warm-up; 0: as many as are due in duration_s
  double duration_s = 0;          // 0: until num_requests; with both, whichever is first
  std::int64_t num_warmup = 0;
  std::function<void(const Progress&)> on_progress;  // four times a second
  const std::atomic<bool>* stop = nullptr;           // once true, what runs is cut off
  /// Each event's data, with when it was read.
  std::function<void(std::string_view data, std::chrono::steady_clock::time_point at)> on_event;
};

struct Answer {
  int status = 0;
  std::string body;
};

class Client {
 public:
  /// Finds the address; connects to nothing yet.
  static Expected<std::unique_ptr<Client>> open(ClientConfig config);
  ~Client();

  /// One request outside of any run: a GET, or a POST with a body.
  Expected<Answer> ask(const std::string& path, const std::optional<std::string>& body);
  RunLog run(const RunOptions& options);

 private:
  Client() = default;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gauntlet::load::inline http
