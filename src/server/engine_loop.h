// The thread that steps the engine for as long as a server lives.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "engine/serving/service.h"
#include "server/metrics/metrics.h"

namespace gauntlet::server {

struct EngineEvents {
  /// A step threw: why, before every request is told and ends.
  std::function<void(const std::string& why)> on_failure;
  /// Between steps, at least ten times a second. What it throws is taken for a step's.
  std::function<void()> between_steps = {};
  /// Once after steps that left nothing to do. What it throws is taken for a step's.
  std::function<void()> at_rest = {};
};

/// Steps the service on this thread until `ends`, or until a step throws.
void step_until(const std::atomic<bool>& ends, engine::Service& service, ServerMetrics& metrics,
                const EngineEvents& events);

class EngineLoop {
 public:
  /// Both outlive the loop.
  EngineLoop(engine::Service& service, ServerMetrics& metrics,
             std::function<void(const std::string& why)> on_failure);
  ~EngineLoop();
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

 private:
  engine::Service& service_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace gauntlet::server
