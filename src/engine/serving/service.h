// Many requests at once over one executor: any thread submits and cancels, one engine thread steps,
// and each request's tokens come to its own callback. What a request gets depends on its own
// prompt, parameters and seed, never on its batch mates, and its fault ends it alone.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/serving/scheduler.h"
#include "engine/serving/service_request.h"
#include "engine/speculation/speculation.h"
#include "engine/steps/executor.h"

namespace gauntlet::engine::inline serving {

struct ServiceConfig {
  SchedulerConfig scheduler;
  /// Of all accounts together: each may fill its part of the queue. 0: anyone may fill all of it.
  double shares = 0;
  std::function<double()> now_s;  // none: the steady clock
  Speculation speculation = {};
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
  double delivery_cpu_s = 0;  // of the engine's thread, in handing out tokens
  SpeculationCounts speculation;
  std::string draft_fault;  // why nobody guesses any more; empty: nothing happened
};

class Service {
 public:
  /// The executor outlives the service, which has it to itself.
  Service(Executor& executor, const ServiceConfig& config);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// From any thread. The error's kind is wrong_use when the request can never be served,
  /// environment when the queue is full now, and check_failed after fail().
  Expected<RequestId> submit(ServiceRequest request, RequestEvents events);
  /// From any thread; all choices end, and their pages go back, before the next step. A request
  /// that ended already is left alone.
  void cancel(RequestId id);
  ServiceStats stats() const;
  /// Tokens that each expert got so far, [layers, experts]; empty where the executor does not count
  /// them. From any thread.
  std::vector<std::int64_t> expert_tokens() const;
  std::int64_t num_experts() const { return executor_.config().num_experts; }
  /// The tokens that end an output unless a request ignores them.
  std::vector<std::int32_t> end_ids() const;
  /// Positions that one request can have at most, prompt and output together. From any thread.
  std::int64_t capacity() const;
  /// Choices that this caller can have waiting at most, of all its requests together. From any
  /// thread.
  std::int64_t max_queue(const Caller& caller) const;
  /// As ServiceConfig has them, from now on. From any thread.
  void set_shares(double shares) { shares_.store(shares); }

  /// From the engine thread alone: one step ends, and where the executor can, the next is under way
  /// by then. False when there was nothing to do. Throws when the executor fails whatever it is
  /// given: then nothing is left but fail().
  bool step();
  /// From the engine thread, and its last call: every request ends, and no other is taken.
  void fail(const std::string& why);
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
    std::vector<PromptToken> prompt = {};  // as far as it is scored, until that was told
    bool prompt_is_done = false;
    std::optional<SeenTokens> seen;         // where something is adjusted
    std::shared_ptr<MaskCursor> mask = {};  // behind the first `masked` tokens made; once asked for
    std::int64_t masked = 0;
    SpeculationCounts speculation = {};
    std::int64_t limit = 0;
    std::int64_t made = 0;
    double submitted_s = 0;
    std::optional<double> started_s = {};
    std::optional<double> first_token_s = {};
  };
  struct Outcome {
    ItemResult result;
    std::string error;  // empty: there is a result

    /// The token after the last known one, and after each guess.
    std::vector<std::int32_t> drawn() const;
  };
  struct Flight {
    StepPlan plan;
    Ticket ticket = 0;                     // 0: not under way
    std::string fault;                     // why it is not, or what became of it
    std::vector<TimedDrafts> drafts = {};  // by drafter
    std::vector<std::size_t> fed = {};     // drafters that are shown what it computes
    double feed_s = 0;                     // that this took
    bool is_ahead = false;                 // started while the one before it was under way
  };

  std::vector<std::uint32_t> checked(std::vector<std::uint32_t> mask) const;
  std::vector<std::uint32_t> allowed(RequestId id);
  /// Guesses that a request would like to have in the next step.
  std::int64_t wished_drafts(RequestId id) const;
  bool drafts_now() const;
  /// Somebody guesses, or would where it paid.
  bool has_drafters() const;
  void begin_drafts();
  /// Has each work's guesses made by whoever is picked for it, and by the next where those have
  /// none.
  void draft(Flight& flight);
  /// The guesses of one drafter for all of these; it is dropped when it throws.
  void draft(std::size_t drafter, const std::vector<DraftWish>& wishes,
             const std::vector<Work*>& works, TimedDrafts& timed);
  void drop(std::size_t drafter, const std::string& fault);
  /// Late guesses of a step that is done become known, and so does what they took.
  void reveal_drafts(Flight& flight);
  void tell_drafters(Flight& flight, std::vector<Outcome>& outcomes);
  /// Tells the budget what a step took.
  void time_step(const Flight& flight, const std::vector<Outcome>& outcomes, double started_s);
  SamplingParams sampling_after(const Work& work) const;
  /// That who fans out may make of a work's guesses.
  TreeShape tree_for(const Work& work, const Drafter& drafter) const;
  /// Guesses behind the item's token, as far as its limit and masks allow them; the others are cut
  /// from the work.
  void add_drafts(Work& work, BatchItem& item);
  static bool runs_ahead(const Choice& choice);
  void take_inbox();
  /// Plans a step and submits it; false when there is nothing to compute, or it cannot be
  /// submitted.
  bool start_step();
  /// The results of the oldest step under way, or of its requests one by one where it failed.
  std::vector<Outcome> finish_step(Flight& flight);
  bool may_run_ahead() const;
  void deliver(const StepPlan& plan, std::vector<Outcome> outcomes);
  static void tell_prefill(const Choice& choice, std::int64_t done);
  enum class Exports { none, residuals, residuals_that_stay };
  /// What those who are fed by this step read, and where.
  Exports exports_for(const Flight& flight) const;
  BatchItem item_for(Work& work, Exports exports);
  std::vector<BatchItem> items_for(std::vector<Work>& work, Exports exports);
  std::vector<Outcome> run_apart(std::vector<Work> work);
  std::vector<Outcome> run_halves(const std::vector<Work>& work, const std::string& fault);
  void check_executor();
  /// Before any guess of a tree is accepted: a path of them comes to lie behind the known token.
  void bring_together(const Work& work, const std::vector<std::int32_t>& path);
  /// Whether this work computes log-probabilities of the prompt's tokens.
  static bool scores_prompt(const Choice& choice, const Work& work);
  void score_prompt(const Work& work, BatchItem& item) const;
  void note_prompt(const Work& work, const ItemResult& result);
  /// The prompt is computed, and its scores are told where asked for. False when that ended the
  /// choice.
  bool tell_prompt(RequestId id, Choice& choice);
  /// Its next token, and those that were guessed as the model draws them.
  void deliver(const Work& work, Choice& choice, ItemResult result);
  /// False when the choice ended.
  bool deliver(RequestId id, Choice& choice, RowResult row);
  TokenEvent choose(RequestId id, Choice& choice, RowResult row);
  std::optional<FinishReason> ending(const Choice& choice, std::int32_t token,
                                     Verdict verdict) const;
  void end(RequestId id, FinishReason reason, std::string error = "");
  FinishEvent last_event(const Choice& choice, FinishReason reason, std::string error) const;
  void publish(std::int64_t step_tokens);

  Executor& executor_;
  const std::function<double()> now_s_;
  const SchedulerConfig scheduler_config_;
  std::atomic<double> shares_;
  Scheduler scheduler_;
  std::vector<std::shared_ptr<Drafter>> drafters_;  // null: it threw
  const TreeShape tree_;                            // of those that fan out
  DraftBudget budget_;
  // Of the engine thread:
  std::map<RequestId, Choice> choices_;
  std::deque<Flight> flights_;  // the oldest first
  bool wants_rest_ = false;     // the next step is planned when none is under way
  /// Where steps can overlap: when the last one ended, which others follow. What lies between two
  /// steps is then part of what guessing costs.
  std::optional<double> last_end_s_;
  ServiceStats live_;

  mutable std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::map<RequestId, Choice> arrivals_;
  std::vector<RequestId> cancels_;
  bool woken_ = false;
  std::optional<std::string> failure_;
  RequestId next_id_ = 1;
  std::int64_t num_queued_ = 0;                             // in the scheduler, as far as known
  std::map<std::int32_t, std::int64_t> queued_by_account_;  // likewise, and of those that arrived
  ServiceStats stats_;
  std::vector<std::int64_t> expert_tokens_;
};

}  // namespace gauntlet::engine::inline serving
