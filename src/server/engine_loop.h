// The thread that steps the engine for as long as a server lives.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "engine/serving/service.h"
#include "server/metrics/metrics.h"

namespace gauntlet::server {

class EngineLoop {
 public:
  /// Both outlive the loop. A step that throws ends it and every request; `on_failure` is told why
  /// before they are.
  EngineLoop(engine::Service& service, ServerMetrics& metrics,
             std::function<void(const std::string& why)> on_failure);
  ~EngineLoop();
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

 private:
  void run();

  engine::Service& service_;
  ServerMetrics& metrics_;
  const std::function<void(const std::string&)> on_failure_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace gauntlet::server
