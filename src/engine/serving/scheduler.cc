#include "engine/serving/scheduler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/check.h"

namespace gauntlet::engine::inline serving {
namespace {

/// What prompts get at least of a step that decoding alone could fill.
constexpr std::int64_t kPromptShare = 8;

std::int64_t pages_for(std::int64_t positions, std::int64_t page_tokens) {
  return (positions + page_tokens - 1) / page_tokens;
}

/// Contiguous sequences share no pages.
SchedulerConfig usable(SchedulerConfig config, const KvPool& pool) {
  if (pool.config().is_contiguous()) config.prefix_caching = PrefixCaching::off;
  return config;
}

/// Pages that a running sequence may ask for soon. A contiguous one has all it will ever need.
std::int64_t growth_pages(const KvPool& pool) { return pool.config().is_contiguous() ? 0 : 1; }

}  // namespace

Scheduler::Scheduler(KvPool& pool, const SchedulerConfig& config)
    : pool_(pool), config_(usable(config, pool)), cache_(pool, config_.prefix_caching) {
  check(config.max_step_tokens > 0 && config.max_running > 0 && config.fixed_batch > 0,
        "a scheduler needs a budget, and room for a request");
  // A window that begins and ends inside pages touches one more than it fills.
  const std::int64_t per_sequence =
      pool.config().is_contiguous()
          ? pool.config().run_pages
          : pages_for(pool.config().window, pool.config().page_tokens) + 1;
  check(pool.config().sliding_pages >= per_sequence, "the KV pool holds less than one window");
  config_.max_running = std::min(config.max_running, pool.config().sliding_pages / per_sequence);
}

Scheduler::~Scheduler() {
  for (const Request* request : running_) cache_.close(request->sequence);
}

std::int64_t Scheduler::capacity() const { return pool_.config().longest(); }

const Scheduler::Request& Scheduler::at(RequestId id) const {
  const auto found = requests_.find(id);
  check(found != requests_.end(), "no such request in the scheduler");
  return found->second;
}

bool Scheduler::add(Arrival arrival, double now_s) {
  const std::int64_t length = std::ssize(arrival.prompt);
  check(length > 0 && length <= capacity(), "a prompt is empty, or longer than the KV pool");
  check(!requests_.contains(arrival.id), "a request was added twice");
  if (num_queued_ >= config_.max_queue) return false;
  Request& request = requests_[arrival.id];
  request.id = arrival.id;
  request.leader = arrival.leader;
  request.caller = arrival.caller;
  request.prefix = arrival.prefix;
  request.max_chunk = arrival.max_chunk;
  if (request.caller.call == 0) request.caller.call = arrival.id;
  request.arrival_s = now_s;
  request.rank = now_s - arrival.priority * config_.priority_s;
  request.tokens = std::move(arrival.prompt);
  request.prompt_tokens = length;
  if (arrival.max_tokens > 0) request.most_tokens = length + arrival.max_tokens;
  waiting_.insert(&request);
  enqueue(request);
  return true;
}

void Scheduler::enqueue(const Request& request) {
  ++num_queued_;
  ++queued_[request.caller.account];
}

void Scheduler::dequeue(const Request& request) {
  --num_queued_;
  const auto found = queued_.find(request.caller.account);
  if (--found->second == 0) queued_.erase(found);
}

void Scheduler::erase(Request& request) {
  if (request.under_way > 0) {
    request.is_gone = true;
    return;
  }
  if (request.sequence != 0) {
    stop(request);
  } else {
    waiting_.erase(&request);
    if (!request.was_admitted) dequeue(request);
  }
  requests_.erase(request.id);
}

void Scheduler::remove(RequestId id) {
  at(id);
  erase(requests_[id]);
  free_slots_of_done_batch();
}

void Scheduler::finish(RequestId id) {
  const bool keeps = config_.batching == Batching::fixed && config_.fixed_slots == FixedSlots::kept;
  if (!keeps) return remove(id);
  check(at(id).sequence != 0 && at(id).left() <= 0, "a request that is not done was finished");
  Request& request = requests_[id];
  request.is_kept_slot = true;
  extend_slot(request);
  free_slots_of_done_batch();
}

void Scheduler::extend_slot(Request& request) {
  const std::int64_t most =
      config_.max_positions > 0 ? std::min(config_.max_positions, capacity()) : capacity();
  if (std::ssize(request.tokens) >= most) return erase(request);
  request.tokens.push_back(0);
}

void Scheduler::free_slots_of_done_batch() {
  if (config_.fixed_slots == FixedSlots::freed) return;
  const auto is_kept = [](const Request* request) { return request->is_kept_slot; };
  if (!std::ranges::all_of(running_, is_kept)) return;
  while (!running_.empty()) erase(**running_.begin());
}

void Scheduler::append(RequestId id, std::int32_t token) {
  Request& request = requests_.at(id);
  check(request.computed == std::ssize(request.tokens),
        "a token was appended before those that come before it were computed");
  check(std::ssize(request.tokens) < capacity(), "a request outgrew the KV pool");
  request.tokens.push_back(token);
}

void Scheduler::accept_draft(RequestId id) {
  check(at(id).computed + 1 == std::ssize(at(id).tokens) && at(id).under_way == 0,
        "a guess was accepted that is not the token after all that is computed");
  Request& request = requests_[id];
  cache_.before_step(request.sequence, 1);
  pool_.commit(request.sequence, 1);
  cache_.after_step(request.sequence, request.tokens);
  request.computed = request.scheduled = pool_.length(request.sequence);
}

std::span<const std::int32_t> Scheduler::tokens(RequestId id) const { return at(id).tokens; }

std::int64_t Scheduler::reused(RequestId id) const { return at(id).reused; }

double Scheduler::kv_usage() const {
  const std::int64_t unused = pool_.free_pages(KvGroup::full) + cache_.evictable(KvGroup::full);
  return 1.0 - static_cast<double>(unused) / static_cast<double>(pool_.config().full_pages);
}

std::vector<RequestId> Scheduler::expire(double now_s) {
  std::vector<RequestId> expired;
  if (config_.max_wait_s <= 0) return expired;
  for (const Request* request : waiting_) {
    if (!request->was_admitted && now_s - request->arrival_s > config_.max_wait_s) {
      expired.push_back(request->id);
    }
  }
  for (const RequestId id : expired) remove(id);
  return expired;
}

/// Pages of full layers that neither are in use nor will soon be: those that prompts under way
/// still need, and one more for each request, which would otherwise push out a newcomer at once.
std::int64_t Scheduler::spare_pages() const {
  std::int64_t spare = pool_.free_pages(KvGroup::full) + cache_.evictable(KvGroup::full);
  for (const Request* request : running_) {
    const std::int64_t left = std::max<std::int64_t>(0, request->left());
    spare -= growth_pages(pool_) + pool_.pages_needed(request->sequence, KvGroup::full, left);
  }
  return spare;
}

bool Scheduler::waits_for_leader(const Request& request) const {
  if (config_.batching == Batching::fixed || config_.prefix_caching == PrefixCaching::off ||
      request.prefix == Prefix::computed) {
    return false;
  }
  const auto leader = requests_.find(request.leader);
  return leader != requests_.end() && !leader->second.prompt_done;
}

Scheduler::Request* Scheduler::next_waiting() const {
  Request* best = nullptr;
  Load least;
  for (Request* request : waiting_) {
    if (waits_for_leader(*request)) continue;
    const Load load = shares_.load(request->caller);
    if (best == nullptr || load < least) {
      best = request;
      least = load;
    }
    if (least == Load()) break;  // nobody has less
  }
  return best;
}

Scheduler::Request* Scheduler::place_for(const Request& newcomer) const {
  Request* best = nullptr;
  Load most;
  for (Request* request : running_) {
    if (!shares_.may_move(request->caller, newcomer.caller)) continue;
    const Load load = shares_.load(request->caller);
    if (best == nullptr || load >= most) {
      best = request;
      most = load;
    }
  }
  return best;
}

Scheduler::Request& Scheduler::most_served() const {
  Request* best = nullptr;
  Load most;
  for (Request* request : running_) {
    const Load load = shares_.load(request->caller);
    if (request->last_step != step_ && (best == nullptr || load >= most)) {
      best = request;
      most = load;
    }
  }
  check(best != nullptr, "pages ran out for a request that has them");
  return *best;
}

void Scheduler::start(Request& request, SequenceId sequence, std::int64_t computed) {
  waiting_.erase(&request);
  request.was_admitted = true;
  request.sequence = sequence;
  request.computed = request.scheduled = computed;
  running_.insert(&request);
  shares_.take(request.caller);
}

void Scheduler::stop(Request& request) {
  running_.erase(&request);
  shares_.give_back(request.caller);
  cache_.close(request.sequence);
  request.sequence = 0;
  request.computed = request.scheduled = 0;
}

bool Scheduler::admit(Request& request, std::int64_t& spare) {
  const std::int64_t idle = cache_.evictable(KvGroup::full);
  const bool shares = request.prefix == Prefix::shared;
  const SequenceId sequence = cache_.open(shares ? std::span<const std::int32_t>(request.tokens)
                                                 : std::span<const std::int32_t>());
  const std::int64_t computed = pool_.length(sequence);
  const std::int64_t needed =
      pool_.pages_needed(sequence, KvGroup::full, std::ssize(request.tokens) - computed) + idle -
      cache_.evictable(KvGroup::full);
  if (!running_.empty() && needed > spare) {
    cache_.close(sequence);
    return false;
  }
  spare -= needed + growth_pages(pool_);
  if (!request.was_admitted) {
    dequeue(request);
    request.reused = computed;
    if (shares) stats_.prefix_queries += request.prompt_tokens;
    stats_.prefix_hits += computed;
  }
  start(request, sequence, computed);
  return true;
}

void Scheduler::admit(StepPlan& plan) {
  const bool is_fixed = config_.batching == Batching::fixed;
  if (waiting_.empty() || (is_fixed && !running_.empty())) return;
  const std::int64_t most =
      is_fixed ? std::min(config_.fixed_batch, config_.max_running) : config_.max_running;
  std::int64_t spare = spare_pages();
  std::int64_t wanted = 0;  // by prompts; requests that decode take turns when they are too many
  for (const Request* request : running_) {
    if (request->left() > 1) wanted += request->next_chunk();
  }
  while (Request* next = next_waiting()) {
    if (!is_fixed && wanted >= config_.max_step_tokens) return;
    // Nobody overtakes one that does not fit: it would wait for ever. Who has more than others
    // makes room for it.
    while (num_running() >= most || !admit(*next, spare)) {
      Request* giver = is_fixed ? nullptr : place_for(*next);
      if (giver == nullptr) return;
      if (num_under_way_ > 0) {
        plan.wants_rest = true;
        return;
      }
      preempt(*giver);
      spare = spare_pages();
    }
    wanted += next->next_chunk();
  }
}

void Scheduler::share_to_prompts(std::vector<Share>& shares, std::int64_t& budget) const {
  const bool whole = config_.chunking == Chunking::off;
  for (Request* request : running_) {
    if (request->left() < 2 || request->is_gone) continue;
    const std::int64_t wanted = request->next_chunk();
    if (budget == 0 || (whole && wanted > budget && !shares.empty())) return;
    shares.push_back({request, std::min(wanted, budget)});
    budget -= shares.back().count;
  }
}

/// The step planned last makes its next token, and there is one after that to make.
bool Scheduler::is_late(const Request& request) const {
  return request.under_way > 0 && request.left() == 0 && request.makes_token &&
         request.last_step == step_ - 1 && request.scheduled < request.most_tokens - 1;
}

bool Scheduler::all_run_ahead() const {
  return std::ranges::none_of(
      running_, [](const Request* one) { return !one->is_gone && one->most_tokens == 0; });
}

std::vector<Scheduler::Share> Scheduler::share_budget() const {
  std::vector<Share> shares;
  std::int64_t budget = config_.max_step_tokens;
  std::vector<Request*> decoding;
  std::int64_t prompt_tokens = 0;
  for (Request* request : running_) {
    if (request->is_gone) continue;
    if (decodes(*request)) decoding.push_back(request);
    if (request->left() > 1) prompt_tokens += request->next_chunk();
  }
  if (config_.chunking == Chunking::off) share_to_prompts(shares, budget);
  std::int64_t kept = 0;
  if (config_.chunking == Chunking::on) {
    kept = std::min(prompt_tokens, pages_for(budget, kPromptShare));
  }
  if (std::ssize(decoding) > budget - kept) {
    // Those that had to wait longest; among equals the rank decides.
    std::ranges::sort(decoding, [](const Request* a, const Request* b) {
      return a->last_step != b->last_step ? a->last_step < b->last_step : ByRank()(a, b);
    });
    decoding.resize(static_cast<std::size_t>(budget - kept));
  }
  for (Request* request : decoding) shares.push_back({request, 1});
  budget -= std::ssize(decoding);
  if (config_.chunking == Chunking::on) share_to_prompts(shares, budget);
  std::ranges::sort(shares, ByRank(), &Share::request);
  return shares;
}

bool Scheduler::make_room(const Request& request, std::int64_t count) {
  for (const KvGroup group : {KvGroup::full, KvGroup::sliding}) {
    const std::int64_t missing =
        pool_.pages_needed(request.sequence, group, count) - pool_.free_pages(group);
    if (missing > cache_.evictable(group)) return false;
    if (missing > 0) cache_.evict(group, missing);
  }
  return pool_.reserve(request.sequence, count);
}

std::int64_t Scheduler::reserve(Request& request, std::int64_t count, StepPlan& plan) {
  while (!make_room(request, count)) {
    if (count > 1) {
      count /= 2;
      continue;
    }
    if (num_under_way_ > 0) {
      plan.wants_rest = true;
      return 0;
    }
    Request& last = most_served();
    preempt(last);
    if (&last == &request) return 0;
  }
  return count;
}

void Scheduler::preempt(Request& request) {
  check(running_.size() > 1, "a request alone does not fit the KV pool");
  stop(request);
  waiting_.insert(&request);
  ++stats_.preemptions;
}

void Scheduler::trim() {
  for (Request* request : running_) {
    if (!request->had_drafts || request->under_way > 0) continue;
    pool_.trim(request->sequence);
    request->had_drafts = false;
  }
}

void Scheduler::share_to_drafts(StepPlan& plan, const DraftWishes& wishes) {
  std::int64_t budget = config_.max_step_tokens;
  for (const Work& work : plan.work) budget -= work.count;
  for (Work& work : plan.work) {
    if (work.count != 1 || !work.is_last || work.is_kept_slot) continue;
    Request& request = requests_.at(work.id);
    std::int64_t room = std::min({budget, wishes(work.id), capacity() - work.begin - 1});
    while (room > 0 && !make_room(request, 1 + room)) room /= 2;
    if (room <= 0) continue;
    work.room_for_drafts = room;
    budget -= room;
    request.had_drafts = true;
    request.makes_token = false;  // how many there will be is not known
  }
}

StepPlan Scheduler::plan(double now_s, const DraftWishes& wishes) {
  StepPlan plan{.expired = expire(now_s)};
  ++step_;
  trim();
  admit(plan);
  for (const auto& [request, wanted] : share_budget()) {
    if (request->sequence == 0) continue;
    const bool late = is_late(*request);
    const std::int64_t count = reserve(*request, wanted, plan);
    if (count == 0) continue;
    Work work{.id = request->id,
              .sequence = request->sequence,
              .begin = request->scheduled,
              .count = count,
              .is_last = late || request->left() == count,
              .is_kept_slot = request->is_kept_slot};
    if (late) work.late_item = request->last_item;
    request->last_step = step_;
    request->last_item = plan.work.size();
    request->makes_token = work.is_last;
    request->scheduled += count;
    ++request->under_way;
    plan.work.push_back(work);
  }
  if (wishes && num_under_way_ == 0) share_to_drafts(plan, wishes);
  // A page that is held looks shared, and would be copied by who reserves more of it.
  for (const Work& work : plan.work) cache_.before_step(work.sequence, work.count);
  ++num_under_way_;
  // A slot that had to give its pages back has nothing to compute again.
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    Request& request = **next++;
    if (request.is_kept_slot) erase(request);
  }
  return plan;
}

void Scheduler::complete(const StepPlan& plan) {
  check(num_under_way_ > 0, "a step was completed that was not planned");
  --num_under_way_;
  for (const Work& work : plan.work) {
    Request& request = requests_.at(work.id);
    --request.under_way;
    if (request.is_gone) {
      if (request.under_way == 0) erase(request);
      continue;
    }
    cache_.after_step(request.sequence, request.tokens);
    request.computed = pool_.length(request.sequence);
    // Where a step failed, all that is not committed is to be computed again.
    if (request.under_way == 0) request.scheduled = request.computed;
    if (request.computed >= request.prompt_tokens) request.prompt_done = true;
    if (request.is_kept_slot && request.left() == 0) extend_slot(request);
  }
}

std::string Scheduler::check_integrity() const {
  if (running_.size() + waiting_.size() != requests_.size()) return "a request is lost";
  std::int64_t queued = 0;
  FairShares shares;
  for (const auto& [id, request] : requests_) {
    const bool runs = request.sequence != 0;
    auto* self = const_cast<Request*>(&request);
    if (runs != running_.contains(self) || runs == waiting_.contains(self)) {
      return "a request runs and waits, or neither";
    }
    if (runs && !request.is_gone && pool_.length(request.sequence) != request.computed) {
      return "a sequence has another length than its request";
    }
    if (request.scheduled < request.computed) return "more is computed than was planned";
    if (request.under_way > num_under_way_) return "a request is in more steps than there are";
    if (request.computed > std::ssize(request.tokens)) return "more is computed than known";
    queued += !request.was_admitted;
    if (runs) shares.take(request.caller);
  }
  if (shares != shares_) return "places are miscounted";
  const std::int64_t by_account =
      std::accumulate(queued_.begin(), queued_.end(), std::int64_t{0},
                      [](std::int64_t sum, const auto& entry) { return sum + entry.second; });
  if (queued != num_queued_ || queued != by_account) return "the queue is miscounted";
  if (num_running() > config_.max_running) return "too many requests run";
  return cache_.check_integrity();
}

}  // namespace gauntlet::engine::inline serving
