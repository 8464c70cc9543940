// Many requests at once over one executor: any thread submits and cancels, one engine thread steps,
// and each request's tokens come to its own callback. What a request gets depends on its own
// prompt, parameters and seed, never on its batch mates, and its fault ends it alone.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/adjustments.h"
#include "engine/executor.h"
#include "engine/generator.h"
#include "engine/scheduler.h"

namespace gauntlet::engine {

struct ServiceRequest {
  std::vector<std::int32_t> prompt;
  std::int64_t max_tokens = 256;
  SamplingParams sampling;  // its step is set for each token
  Adjustments adjustments;
  std::vector<std::int32_t> stop_ids;
  EndOfSequence end_of_sequence = EndOfSequence::ends;
  int num_choices = 1;  // the first draws with the seed, each other with one made of it
  int top_log_probs = 0;
  int priority = 0;
};

struct TokenEvent {
  int choice = 0;
  std::int32_t token = -1;
  float log_probability = 0;      // before temperature and adjustments
  std::vector<TokenLogProb> top;  // as many as asked for
};

struct FinishEvent {
  int choice = 0;
  FinishReason reason = FinishReason::length;
  std::string error;  // one sentence where it expired or failed
  std::int64_t prompt_tokens = 0;
  std::int64_t reused_tokens = 0;  // of those, from the prefix cache
  std::int64_t output_tokens = 0;
  double queue_s = 0;    // until its first step
  double prefill_s = 0;  // from there to its first token
  double decode_s = 0;   // from there to its end
};

enum class Verdict { go_on, stop };

/// Called by the engine thread, so they are quick. A stop string is the caller's to find: its
/// verdict ends the choice with FinishReason::stop.
struct RequestEvents {
  std::function<Verdict(const TokenEvent&)> on_token;
  std::function<void(const FinishEvent&)> on_finish;  // once per choice, its last event
};

struct ServiceConfig {
  SchedulerConfig scheduler;
  std::function<double()> now_s;  // none: the steady clock
};

struct ServiceStats {
  std::int64_t num_running = 0;
  std::int64_t num_waiting = 0;
  double kv_usage = 0;
  SchedulerStats scheduler;
  std::int64_t steps = 0;
  std::int64_t prompt_tokens = 0;  // computed or reused, of prompts that are through
  std::int64_t output_tokens = 0;
  std::int64_t last_step_tokens = 0;
};

class Service {
 public:
  /// The executor outlives the service, which has it to itself.
  Service(Executor& executor, const ServiceConfig& config);

  /// From any thread. The error's kind is wrong_use when the request can never be served, and
  /// environment when the queue is full now.
  Expected<RequestId> submit(ServiceRequest request, RequestEvents events);
  /// From any thread; all choices end, and their pages go back, before the next step. A request
  /// that ended already is left alone.
  void cancel(RequestId id);
  ServiceStats stats() const;

  /// From the engine thread alone. False when there was nothing to do.
  bool step();
  /// Sleeps until something was submitted or cancelled, wake() was called, or the time is over.
  void wait(double seconds);
  /// From any thread.
  void wake();
  /// Between steps, from the engine thread.
  std::string check_integrity() const { return scheduler_.check_integrity(); }

 private:
  struct Choice {
    RequestId group = 0;  // the id of its request: that of its first choice
    int index = 0;
    std::shared_ptr<const ServiceRequest> request;
    std::shared_ptr<const RequestEvents> events;
    SamplingParams sampling;
    std::optional<SeenTokens> seen;  // where something is adjusted
    std::int64_t limit = 0;
    std::int64_t made = 0;
    double submitted_s = 0;
    std::optional<double> started_s = {};
    std::optional<double> first_token_s = {};
  };
  struct Outcome {
    ItemResult result;
    std::string error;  // empty: there is a result
  };

  Expected<void> check_request(const ServiceRequest& request) const;
  std::int64_t capacity() const;
  void take_inbox();
  BatchItem item_for(const Work& work) const;
  std::vector<ItemResult> run(const std::vector<Work>& work);
  std::vector<Outcome> run_apart(const std::vector<Work>& work);
  void deliver(RequestId id, ItemResult result);
  TokenEvent choose(Choice& choice, ItemResult result) const;
  std::optional<FinishReason> ending(const Choice& choice, std::int32_t token,
                                     Verdict verdict) const;
  void end(RequestId id, FinishReason reason, std::string error = "");
  void publish(std::int64_t step_tokens);

  Executor& executor_;
  const std::function<double()> now_s_;
  const SchedulerConfig scheduler_config_;
  Scheduler scheduler_;
  // Of the engine thread:
  std::map<RequestId, Choice> choices_;
  ServiceStats live_;

  mutable std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::map<RequestId, Choice> arrivals_;
  std::vector<RequestId> cancels_;
  bool woken_ = false;
  RequestId next_id_ = 1;
  std::int64_t num_queued_ = 0;  // in the scheduler, as far as known
  ServiceStats stats_;
};

}  // namespace gauntlet::engine
