// The endpoints over an engine that computes nothing and ends soon, for fuzzers of requests.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "engine/steps/fake_executor.h"
#include "engine/tiny_tokenizer.h"
#include "server/openai/api.h"
#include "server/structured/grammar_constraints.h"

namespace gauntlet::tests {

/// Ends the process where a fuzzer has to stop and keep its input.
inline void demand(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

class Served final : public server::Handler {
 public:
  Served() {
    executor_.next = [](const engine::FakeExecutor::History& history) {
      const std::int32_t last = history.back();
      return history.size() % 9 == 0 ? eos() : (last * 7 + 13) % 4000;
    };
  }

  server::Admission admit(const server::HttpRequest& head) override { return api_.admit(head); }
  std::size_t weight(const server::HttpRequest& request) override { return api_.weight(request); }
  /// The reply is complete when this returns.
  std::shared_ptr<server::Reply> handle(const server::HttpRequest& request) override {
    auto reply = api_.handle(request);
    step_until_idle();
    return reply;
  }

  /// After a reply was read and abandoned: the engine is as it was.
  void check_left_clean() {
    step_until_idle();
    const engine::ServiceStats stats = service_.stats();
    demand(stats.num_running == 0 && stats.num_waiting == 0, "a request stayed");
    demand(stats.kv_usage == 0, "pages stayed in use");
    demand(service_.check_integrity().empty(), service_.check_integrity());
    executor_.steps.clear();
  }

 private:
  static std::int32_t eos() { return *engine::tiny_tokenizer().special("<|return|>"); }
  static model::ModelConfig config() {
    model::ModelConfig config;
    config.name = "tiny";
    config.vocab = engine::tiny_tokenizer().vocab_size();
    config.max_positions = 96;
    config.eos_ids = {eos()};
    return config;
  }

  void step_until_idle() {
    constexpr int kMostSteps = 10000;
    int steps = 0;
    while (service_.step()) demand(++steps < kMostSteps, "the engine never comes to rest");
  }

  engine::FakeExecutor executor_{config(), 256, 200};
  engine::Service service_{executor_, {.scheduler = {.max_running = 8, .max_queue = 24}}};
  server::ServerMetrics metrics_;
  server::GrammarConstraints constraints_{engine::tiny_tokenizer(), config()};
  server::Api api_{
      {.model = {.name = "tiny", .vocab = config().vocab}, .constraints = &constraints_},
      service_,
      engine::tiny_tokenizer(),
      metrics_};
};

}  // namespace gauntlet::tests
