// Which tokens of which requests make up the next step: a budget of tokens shared between decoding
// and prompts, requests admitted as pages allow and as is fair between callers, and the last of
// whoever has most put back when they run out. Pure logic over the KV pool; the caller has the
// clock and runs the steps.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/kv/prefix_cache.h"
#include "engine/serving/fair_shares.h"
#include "engine/speculation/draft.h"

namespace gauntlet::engine::inline serving {

enum class Batching {
  continuous,  // requests come and go at every step
  fixed,       // a batch of those that wait when the one before is done, and nobody joins it
};
enum class Chunking {
  on,   // prompts take what decoding leaves of each step
  off,  // prompts go first and whole, over steps of their own where one cannot hold them
};

/// With fixed batches: what becomes of the place of a request that is done before its batch is.
enum class FixedSlots {
  freed,  // nothing is computed there any more
  kept,   // tokens that nobody reads are: the batch keeps its shape, as where shapes are fixed
};

struct SchedulerConfig {
  Batching batching = Batching::continuous;
  Chunking chunking = Chunking::on;
  PrefixCaching prefix_caching = PrefixCaching::on;
  std::int64_t max_step_tokens = 512;
  std::int64_t max_running = 64;
  std::int64_t fixed_batch = 8;
  FixedSlots fixed_slots = FixedSlots::freed;
  std::int64_t max_positions = 0;  // that a kept slot grows to; 0: as many as the pool has
  std::int64_t max_queue = 1024;
  double max_wait_s = 0;   // before a request's first step; 0: for ever
  double priority_s = 10;  // the wait that one step of priority outweighs, so that nobody starves
};

using RequestId = std::int64_t;

/// What a request's prompt may begin with.
enum class Prefix {
  shared,    // pages of others that began alike
  computed,  // nothing of others: each of its tokens is to be seen
};

inline constexpr std::int64_t kNoChunkLimit = std::numeric_limits<std::int64_t>::max();

struct Arrival {
  RequestId id = 0;
  std::vector<std::int32_t> prompt;
  int priority = 0;      // higher goes first
  RequestId leader = 0;  // waits until that one's prompt is computed, to share its pages; 0: nobody
  Caller caller = {};    // its call: the request itself where it is 0
  Prefix prefix = Prefix::shared;
  std::int64_t max_chunk = kNoChunkLimit;  // tokens of its prompt that one step may have
  /// Tokens that it may make. Known, a step can be planned for a token that is not there yet; 0: no
  /// step is.
  std::int64_t max_tokens = 0;
};

/// A request's tokens [begin, begin + count) go into the step; their pages are reserved.
struct Work {
  RequestId id = 0;
  SequenceId sequence = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;
  bool is_last = false;              // the token after these is not known yet
  bool is_kept_slot = false;         // its request is done, and nobody reads what comes out
  std::int64_t room_for_drafts = 0;  // places reserved behind them for guesses
  Draft drafts = {};                 // at most so many, which the caller puts there
  std::size_t drafter = 0;           // who guessed them; the caller's number
  /// Its one token is what this item of the plan before samples; none: all are known.
  std::optional<std::size_t> late_item = {};
};

/// Guesses that a request which decodes would like to have behind its token.
using DraftWishes = std::function<std::int64_t(RequestId id)>;

struct StepPlan {
  std::vector<Work> work;          // in rank order
  std::vector<RequestId> expired;  // waited too long, and are gone
  /// Somebody has to give up its place or pages, which nobody does while steps are under way.
  bool wants_rest = false;
};

struct SchedulerStats {
  std::int64_t preemptions = 0;
  std::int64_t prefix_queries = 0;  // tokens of prompts
  std::int64_t prefix_hits = 0;     // of those, taken up from the prefix cache
};

class Scheduler {
 public:
  /// The pool outlives the scheduler.
  Scheduler(KvPool& pool, const SchedulerConfig& config);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Positions that one request can have at most.
  std::int64_t capacity() const;
  /// False when the queue is full. The prompt has at least one token and fits capacity().
  [[nodiscard]] bool add(Arrival arrival, double now_s);
  /// Ends a request; its pages go back now, or when the steps that it is in are complete.
  void remove(RequestId id);
  /// The same for one whose last token was just computed, but a fixed batch may keep its slot,
  /// under the same id, until its other requests are done.
  void finish(RequestId id);

  /// The next step. Plans that are not complete are under way; of requests whose next token they
  /// make, the one after it can be planned already. Guesses get what is left of the budget when
  /// all others have their part, and of the pages; none do while steps are under way.
  StepPlan plan(double now_s, const DraftWishes& wishes = {});
  /// After the step: its positions are committed, or it failed and they are not. In the order of
  /// plans; when one failed, those after it did, too.
  void complete(const StepPlan& plan);
  /// The token after all others of a request, which runs.
  void append(RequestId id, std::int32_t token);
  /// The token appended last was guessed in the step completed last: its position holds data.
  void accept_draft(RequestId id);
  std::int64_t num_under_way() const { return num_under_way_; }
  /// Requests that run and whose next step can be planned before their token is known.
  bool all_run_ahead() const;

  /// The prompt and what was appended.
  std::span<const std::int32_t> tokens(RequestId id) const;
  /// Tokens of the prompt that were taken up from the prefix cache.
  std::int64_t reused(RequestId id) const;

  std::int64_t num_running() const { return std::ssize(running_); }
  std::int64_t num_waiting() const { return std::ssize(waiting_); }
  /// Of those waiting, the ones that never ran: what max_queue limits.
  std::int64_t num_queued() const { return num_queued_; }
  /// The same, apart; without accounts that have none.
  const std::map<std::int32_t, std::int64_t>& queued_by_account() const { return queued_; }
  const SchedulerStats& stats() const { return stats_; }
  /// Pages of full layers that sequences use, in [0, 1].
  double kv_usage() const;

  /// Empty when requests, sequences and pages agree; otherwise what does not.
  std::string check_integrity() const;

 private:
  struct Request {
    RequestId id = 0;
    RequestId leader = 0;
    Caller caller;
    Prefix prefix = Prefix::shared;
    std::int64_t max_chunk = kNoChunkLimit;
    double arrival_s = 0;
    double rank = 0;  // lower goes first; ids break ties
    std::vector<std::int32_t> tokens;
    std::int64_t prompt_tokens = 0;
    std::int64_t computed = 0;     // positions committed
    std::int64_t scheduled = 0;    // those, and the ones of steps under way
    std::int64_t most_tokens = 0;  // prompt and output; 0: nothing is planned ahead
    int under_way = 0;             // steps it is in
    std::size_t last_item = 0;     // its place in the step planned last, if it is in that
    bool makes_token = false;      // there
    bool is_gone = false;          // removed, while steps it is in are under way
    bool had_drafts = false;       // pages reserved for them may be left
    std::int64_t reused = 0;
    std::int64_t last_step = 0;
    SequenceId sequence = 0;  // 0: waiting
    bool was_admitted = false;
    bool prompt_done = false;
    bool is_kept_slot = false;

    std::int64_t left() const { return std::ssize(tokens) - scheduled; }
    /// The most that one step may have of it.
    std::int64_t next_chunk() const { return std::min(left(), max_chunk); }
  };
  struct ByRank {
    bool operator()(const Request* a, const Request* b) const {
      return a->rank != b->rank ? a->rank < b->rank : a->id < b->id;
    }
  };
  using Ranked = std::set<Request*, ByRank>;
  struct Share {
    Request* request;
    std::int64_t count;
  };

  std::vector<RequestId> expire(double now_s);
  void admit(StepPlan& plan);
  /// `spare` pages may go to newcomers; this one takes its part.
  bool admit(Request& request, std::int64_t& spare);
  /// Whose turn it is: of those that hold least, the first in rank. None: nobody can run.
  Request* next_waiting() const;
  /// A request that runs and whose place `newcomer` may take; none where that would not be fair.
  Request* place_for(const Request& newcomer) const;
  /// The last in rank of whoever holds most, among those that have no part in this step yet.
  Request& most_served() const;
  void enqueue(const Request& request);
  void dequeue(const Request& request);
  void start(Request& request, SequenceId sequence, std::int64_t computed);
  /// Out of those that run; its pages go back.
  void stop(Request& request);
  std::int64_t spare_pages() const;
  bool waits_for_leader(const Request& request) const;
  /// One token of it can go into the next step: a known one, or the one that the step before makes.
  bool decodes(const Request& request) const { return request.left() == 1 || is_late(request); }
  bool is_late(const Request& request) const;
  std::vector<Share> share_budget() const;
  void share_to_drafts(StepPlan& plan, const DraftWishes& wishes);
  /// Pages of guesses that were not accepted go back.
  void trim();
  void share_to_prompts(std::vector<Share>& shares, std::int64_t& budget) const;
  bool make_room(const Request& request, std::int64_t count);
  /// Positions that got pages: fewer for a prompt when they are short, none when it was preempted,
  /// or would have to be while steps are under way.
  std::int64_t reserve(Request& request, std::int64_t count, StepPlan& plan);
  void preempt(Request& request);
  /// Gives a kept slot its next token, or gives it up where it cannot grow.
  void extend_slot(Request& request);
  void free_slots_of_done_batch();
  void erase(Request& request);
  const Request& at(RequestId id) const;

  KvPool& pool_;
  SchedulerConfig config_;
  PrefixCache cache_;
  std::unordered_map<RequestId, Request> requests_;
  Ranked waiting_;
  Ranked running_;
  FairShares shares_;  // of running_
  std::int64_t num_queued_ = 0;
  std::map<std::int32_t, std::int64_t> queued_;  // by account
  std::int64_t step_ = 0;
  std::int64_t num_under_way_ = 0;  // plans
  SchedulerStats stats_;
};

}  // namespace gauntlet::engine::inline serving
