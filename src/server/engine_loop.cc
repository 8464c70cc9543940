#include "server/engine_loop.h"

#include <pthread.h>

#include <utility>

namespace gauntlet::server {

void step_until(const std::atomic<bool>& ends, engine::Service& service, ServerMetrics& metrics,
                const EngineEvents& events) {
  constexpr double kIdleWait_s = 0.1;
  bool did_something = false;
  try {
    while (!ends.load()) {
      if (events.between_steps) events.between_steps();
      if (service.step()) {
        metrics.iteration_tokens.observe(static_cast<double>(service.stats().last_step_tokens));
        did_something = true;
        continue;
      }
      if (std::exchange(did_something, false) && events.at_rest) events.at_rest();
      service.wait(kIdleWait_s);
    }
  } catch (const std::exception& fault) {
    events.on_failure(fault.what());
    service.fail(fault.what());
  }
}

EngineLoop::EngineLoop(engine::Service& service, ServerMetrics& metrics,
                       std::function<void(const std::string& why)> on_failure)
    : service_(service), thread_([this, &metrics, on_failure = std::move(on_failure)] {
        pthread_setname_np(pthread_self(), "engine");
        step_until(ends_, service_, metrics, {.on_failure = on_failure});
      }) {}

EngineLoop::~EngineLoop() {
  ends_.store(true);
  service_.wake();
  thread_.join();
}

}  // namespace gauntlet::server
