#include "server/engine_loop.h"

#include <pthread.h>

namespace gauntlet::server {

EngineLoop::EngineLoop(engine::Service& service, ServerMetrics& metrics,
                       std::function<void(const std::string& why)> on_failure)
    : service_(service),
      metrics_(metrics),
      on_failure_(std::move(on_failure)),
      thread_([this] { run(); }) {}

EngineLoop::~EngineLoop() {
  ends_.store(true);
  service_.wake();
  thread_.join();
}

void EngineLoop::run() {
  constexpr double kIdleWait_s = 0.1;
  pthread_setname_np(pthread_self(), "engine");
  try {
    while (!ends_.load()) {
      if (service_.step()) {
        metrics_.iteration_tokens.observe(static_cast<double>(service_.stats().last_step_tokens));
      } else {
        service_.wait(kIdleWait_s);
      }
    }
  } catch (const std::exception& fault) {
    on_failure_(fault.what());
    service_.fail(fault.what());
  }
}

}  // namespace gauntlet::server
