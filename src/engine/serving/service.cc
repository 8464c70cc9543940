#include "engine/serving/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/os/cpu_time.h"
#include "core/random.h"

namespace gauntlet::engine::inline serving {
namespace {

double steady_now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

SchedulerConfig within(SchedulerConfig config, const Executor& executor) {
  config.max_step_tokens = std::min(config.max_step_tokens, executor.max_batch_tokens());
  config.max_positions = executor.config().max_positions;
  return config;
}

/// What each drafter has to be shown. An executor exports the residuals that one of them asks for.
std::vector<Feeding> feeding_of(const std::vector<std::shared_ptr<Drafter>>& drafters) {
  std::vector<Feeding> feeding;
  for (const auto& drafter : drafters) {
    feeding.push_back(drafter->residuals_after().empty() ? Feeding::none : Feeding::residuals);
  }
  check(std::ranges::count(feeding, Feeding::residuals) <= 1, "one draft head is fed at most");
  return feeding;
}

std::vector<TreeShape> trees_of(const std::vector<std::shared_ptr<Drafter>>& drafters,
                                const TreeShape& tree) {
  std::vector<TreeShape> trees;
  for (const auto& drafter : drafters) trees.push_back(drafter->fans_out() ? tree : TreeShape());
  return trees;
}

void tell(const RequestEvents& events, const FinishEvent& event) {
  try {
    if (events.on_finish) events.on_finish(event);
  } catch (const std::exception&) {
    // The request is over and its pages are back: there is nobody left to tell.
  }
}

}  // namespace

Service::Service(Executor& executor, const ServiceConfig& config)
    : executor_(executor),
      now_s_(config.now_s ? config.now_s : steady_now_s),
      scheduler_config_(within(config.scheduler, executor)),
      shares_(config.shares),
      scheduler_(executor.kv(), scheduler_config_),
      drafters_(config.speculation.all()),
      tree_(config.speculation.tree),
      budget_(config.speculation.lengths, config.speculation.max_drafts, feeding_of(drafters_),
              trees_of(drafters_, tree_)) {}

Service::~Service() {
  // The executor outlives this, and must have nothing under way.
  for (const Flight& flight : flights_) {
    if (flight.ticket != 0) executor_.abandon(flight.ticket);
  }
}

std::int64_t Service::capacity() const {
  return std::min(executor_.config().max_positions, scheduler_.capacity());
}

std::int64_t Service::max_queue(const Caller& caller) const {
  const std::int64_t all = scheduler_config_.max_queue;
  const double shares = shares_.load();
  if (shares <= 0) return all;
  const double part = std::min(1.0, caller.share / shares);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(all) * part));
}

Expected<RequestId> Service::submit(ServiceRequest request, RequestEvents events) {
  const RequestLimits limits{.vocab = executor_.config().vocab,
                             .positions = capacity(),
                             .choices = max_queue(request.caller)};
  if (auto valid = validate(request, limits); !valid) return valid.error();
  const auto shared = std::make_shared<const ServiceRequest>(std::move(request));
  const auto shared_events = std::make_shared<const RequestEvents>(std::move(events));
  const std::int64_t prompt_tokens = std::ssize(shared->prompt);
  std::vector<Choice> choices(
      static_cast<std::size_t>(shared->num_choices),
      {.request = shared,
       .events = shared_events,
       .sampling = shared->sampling,
       .limit = std::min(shared->max_tokens, capacity() - prompt_tokens + 1),
       .submitted_s = now_s_()});
  for (int i = 0; i < shared->num_choices; ++i) {
    Choice& choice = choices[i];
    choice.index = i;
    choice.sampling.step = 0;
    if (i > 0) choice.sampling.seed = Random(shared->sampling.seed).bits(static_cast<unsigned>(i));
    if (shared->adjustments.any()) choice.seen.emplace(shared->prompt);
  }

  const std::lock_guard lock(mutex_);
  if (failure_) return Error{"the engine has failed: " + *failure_, ErrorKind::check_failed};
  const std::int64_t queued = num_queued_ + std::ssize(arrivals_);
  if (queued + shared->num_choices > scheduler_config_.max_queue) {
    return Error{fmt::format("{} requests wait already, and the queue holds {}: try again later",
                             queued, scheduler_config_.max_queue)};
  }
  std::int64_t& of_account = queued_by_account_[shared->caller.account];
  if (of_account + shared->num_choices > max_queue(shared->caller)) {
    return Error{
        fmt::format("{} requests of this key wait already, and its part of the queue holds "
                    "{}: try again later",
                    of_account, max_queue(shared->caller))};
  }
  of_account += shared->num_choices;
  const RequestId group = next_id_;
  for (Choice& choice : choices) {
    choice.group = group;
    arrivals_.emplace(next_id_++, std::move(choice));
  }
  changed_.notify_one();
  return group;
}

void Service::cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  cancels_.push_back(id);
  changed_.notify_one();
}

ServiceStats Service::stats() const {
  const std::lock_guard lock(mutex_);
  ServiceStats stats = stats_;
  stats.num_waiting += std::ssize(arrivals_);
  return stats;
}

std::vector<std::int32_t> Service::end_ids() const {
  const auto& ids = executor_.config().eos_ids;
  return {ids.begin(), ids.end()};
}

std::vector<std::int64_t> Service::expert_tokens() const {
  const std::lock_guard lock(mutex_);
  return expert_tokens_;
}

void Service::wait(double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [&] { return woken_ || !arrivals_.empty() || !cancels_.empty(); });
  woken_ = false;
}

void Service::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_one();
}

/// Its next step needs nothing that the host makes of its token.
bool Service::runs_ahead(const Choice& choice) { return !choice.request->allowed && !choice.seen; }

void Service::take_inbox() {
  std::map<RequestId, Choice> arrivals;
  std::vector<RequestId> cancels;
  {
    const std::lock_guard lock(mutex_);
    arrivals.swap(arrivals_);
    cancels.swap(cancels_);
    num_queued_ = scheduler_.num_queued() + std::ssize(arrivals);
  }
  for (auto& [id, choice] : arrivals) {
    Caller caller = choice.request->caller;
    if (caller.call == 0) caller.call = choice.group;
    const std::optional<int> scored = choice.request->prompt_log_probs;
    const bool added = scheduler_.add({.id = id,
                                       .prompt = choice.request->prompt,
                                       .priority = choice.request->priority,
                                       .leader = choice.group == id ? 0 : choice.group,
                                       .caller = caller,
                                       .prefix = scored ? Prefix::computed : Prefix::shared,
                                       .max_chunk = scored.value_or(0) > 0 ? 1 : kNoChunkLimit,
                                       .max_tokens = runs_ahead(choice) ? choice.limit : 0},
                                      choice.submitted_s);
    check(added, "the queue was counted wrong");
    choices_.emplace(id, std::move(choice));
  }
  for (const RequestId group : cancels) {
    for (auto next = choices_.lower_bound(group);
         next != choices_.end() && next->second.group == group;) {
      end((next++)->first, FinishReason::cancelled);
    }
  }
}

/// Where all that run can: a request that waits for its token would else get every second step. A
/// drafter is shown a step before the next one starts.
bool Service::may_run_ahead() const {
  return !drafts_now() && std::ssize(flights_) < executor_.most_in_flight() && !wants_rest_ &&
         flights_.back().fed.empty() && scheduler_config_.batching == Batching::continuous &&
         scheduler_.all_run_ahead();
}

bool Service::start_step() {
  if (has_drafters()) begin_drafts();
  StepPlan plan =
      scheduler_.plan(now_s_(), has_drafters() ? [this](RequestId id) { return wished_drafts(id); }
                                               : DraftWishes());
  wants_rest_ = plan.wants_rest;
  for (const RequestId id : plan.expired) {
    end(id, FinishReason::expired,
        fmt::format("the request waited longer than {} s for its turn",
                    scheduler_config_.max_wait_s));
  }
  for (const Work& work : plan.work) {
    if (work.is_kept_slot) continue;
    Choice& choice = choices_.at(work.id);
    if (!choice.started_s) choice.started_s = now_s_();
  }
  const bool is_ahead = !flights_.empty();
  Flight& flight = flights_.emplace_back(Flight{.plan = std::move(plan), .is_ahead = is_ahead});
  if (has_drafters()) draft(flight);
  if (flight.plan.work.empty()) return false;
  try {
    flight.ticket = executor_.submit(items_for(flight.plan.work, exports_for(flight)));
  } catch (const std::exception& fault) {
    flight.fault = fault.what();  // whose it is, finish_step() finds out
    return false;
  }
  return true;
}

std::vector<Service::Outcome> Service::finish_step(Flight& flight) {
  std::vector<Outcome> outcomes(flight.plan.work.size());
  if (flight.ticket != 0) {
    try {
      std::vector<ItemResult> results = executor_.collect(flight.ticket);
      for (std::size_t i = 0; i < results.size(); ++i) outcomes[i].result = std::move(results[i]);
      reveal_drafts(flight);
      if (!flight.fed.empty()) tell_drafters(flight, outcomes);
      return outcomes;
    } catch (const std::exception& fault) {
      flight.fault = fault.what();
    }
  }
  // What was started after it rests on tokens that it did not make.
  for (Flight& later : flights_) {
    if (later.ticket != 0) executor_.abandon(std::exchange(later.ticket, 0));
  }
  // Nor are guesses worth a second try.
  for (Work& work : flight.plan.work) work.drafts = {};
  std::vector<Work> live;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < flight.plan.work.size(); ++i) {
    const Work& work = flight.plan.work[i];
    if (!choices_.contains(work.id) && !work.is_kept_slot) continue;
    live.push_back(work);
    places.push_back(i);
  }
  std::vector<Outcome> some = run_halves(live, flight.fault);
  for (std::size_t i = 0; i < live.size(); ++i) outcomes[places[i]] = std::move(some[i]);
  return outcomes;
}

bool Service::step() {
  take_inbox();
  const double started_s = last_end_s_ ? *last_end_s_ : now_s_();
  if (flights_.empty()) start_step();
  if (flights_.back().ticket != 0 && may_run_ahead()) start_step();
  Flight flight = std::move(flights_.front());
  flights_.pop_front();
  std::vector<Outcome> outcomes = finish_step(flight);
  if (has_drafters()) time_step(flight, outcomes, started_s);
  scheduler_.complete(flight.plan);
  // Steps that were abandoned, or could not be submitted behind another, are planned anew.
  while (!flights_.empty() && flights_.front().ticket == 0) {
    scheduler_.complete(flights_.front().plan);
    flights_.pop_front();
  }
  const bool did_something = !flight.plan.work.empty() || !flight.plan.expired.empty();
  const double delivery_began_s = thread_cpu_s();
  deliver(flight.plan, std::move(outcomes));
  live_.delivery_cpu_s += thread_cpu_s() - delivery_began_s;
  if (choices_.empty() || !did_something) last_end_s_.reset();
  return did_something;
}

void Service::tell_prefill(const Choice& choice, std::int64_t done) {
  if (choice.made > 0 || !choice.events->on_prefill) return;
  choice.events->on_prefill(std::min(done, std::ssize(choice.request->prompt)));
}

void Service::deliver(const StepPlan& plan, std::vector<Outcome> outcomes) {
  std::int64_t tokens = 0;
  std::size_t num_failed = 0;
  for (std::size_t i = 0; i < plan.work.size(); ++i) {
    const Work& work = plan.work[i];
    tokens += work.count;
    num_failed += !outcomes[i].error.empty();
    const auto found = choices_.find(work.id);
    if (found == choices_.end()) continue;  // ended meanwhile, or a kept slot
    if (!outcomes[i].error.empty()) {
      end(work.id, FinishReason::failed, std::move(outcomes[i].error));
      continue;
    }
    Choice& choice = found->second;
    tell_prefill(choice, work.begin + work.count);
    if (scores_prompt(choice, work)) note_prompt(work, outcomes[i].result);
    if (work.is_last) deliver(work, choice, std::move(outcomes[i].result));
  }
  publish(tokens);
  if (num_failed > 0 && num_failed == plan.work.size()) check_executor();
}

TokenEvent Service::choose(RequestId id, Choice& choice, RowResult result) {
  TokenEvent event{
      .choice = choice.index, .token = result.token, .log_probability = result.log_probability};
  if (event.token == kNoChoice || result.logits.empty()) return event;
  if (choice.request->top_log_probs > 0) {
    event.top = top_log_probs(result.logits, *choice.request->top_log_probs);
    // One number for one token: the executor's sum may be rounded otherwise.
    const auto own = std::ranges::find(event.top, event.token, &TokenLogProb::token);
    if (own != event.top.end()) event.log_probability = own->log_probability;
  }
  if (!choice.seen) return event;
  std::vector<float> adjusted = result.logits;
  choice.seen->adjust(choice.request->adjustments, adjusted);
  event.token = sample(adjusted, choice.sampling, allowed(id));
  if (event.token == kNoChoice) return event;
  event.log_probability = log_probability(result.logits, event.token);
  choice.seen->add_output(event.token);
  return event;
}

std::optional<FinishReason> Service::ending(const Choice& choice, std::int32_t token,
                                            Verdict verdict) const {
  const auto has = [&](const auto& ids) { return std::ranges::find(ids, token) != ids.end(); };
  if (choice.request->end_of_sequence == EndOfSequence::ends && has(executor_.config().eos_ids)) {
    return FinishReason::eos;
  }
  if (has(choice.request->stop_ids) || verdict == Verdict::stop) return FinishReason::stop;
  if (choice.made == choice.limit) return FinishReason::length;
  return std::nullopt;
}

void Service::deliver(const Work& work, Choice& choice, ItemResult result) {
  if (!tell_prompt(work.id, choice)) return;
  if (work.drafts.empty()) {
    deliver(work.id, choice,
            {.token = result.token,
             .log_probability = result.log_probability,
             .logits = std::move(result.logits)});
    return;
  }
  Outcome outcome{.result = std::move(result)};
  const std::vector<std::int32_t> path = accepted_path(work.drafts, outcome.drawn());
  std::vector<RowResult> rows = std::move(outcome.result.rows);
  rows.push_back({.token = outcome.result.token,
                  .log_probability = outcome.result.log_probability,
                  .logits = std::move(outcome.result.logits)});
  choice.speculation.add_step(std::ssize(work.drafts));
  live_.speculation.add_step(std::ssize(work.drafts));
  if (work.drafts.is_tree()) bring_together(work, path);
  std::size_t row = 0;
  for (std::size_t i = 0; i < path.size(); ++i) {
    choice.speculation.add_accepted(i);
    live_.speculation.add_accepted(i);
    if (!deliver(work.id, choice, std::move(rows[row]))) return;
    scheduler_.accept_draft(work.id);
    row = static_cast<std::size_t>(path[i]) + 1;
  }
  deliver(work.id, choice, std::move(rows[row]));
}

bool Service::deliver(RequestId id, Choice& choice, RowResult row) {
  const auto fails = [&](std::string why) {
    end(id, FinishReason::failed, std::move(why));
    return false;
  };
  TokenEvent event;
  try {
    event = choose(id, choice, std::move(row));
  } catch (const std::exception& fault) {
    return fails(fmt::format("no token was chosen: {}", fault.what()));
  }
  if (event.token == kNoChoice) {
    return fails(fmt::format("{} left no token to choose at position {}", executor_.config().name,
                             scheduler_.tokens(id).size()));
  }
  if (!choice.first_token_s) choice.first_token_s = now_s_();
  ++live_.output_tokens;
  ++choice.made;
  ++choice.sampling.step;
  Verdict verdict = Verdict::go_on;
  try {
    if (choice.events->on_token) verdict = choice.events->on_token(event);
  } catch (const std::exception& fault) {
    return fails(fmt::format("its callback threw: {}", fault.what()));
  }
  if (const auto reason = ending(choice, event.token, verdict)) {
    end(id, *reason);
    return false;
  }
  scheduler_.append(id, event.token);
  return true;
}

FinishEvent Service::last_event(const Choice& choice, FinishReason reason,
                                std::string error) const {
  const double now = now_s_();
  const double started = choice.started_s.value_or(now);
  const double first_token = choice.first_token_s.value_or(now);
  return {.choice = choice.index,
          .reason = reason,
          .error = std::move(error),
          .prompt_tokens = std::ssize(choice.request->prompt),
          .output_tokens = choice.made,
          .speculation = choice.speculation,
          .queue_s = started - choice.submitted_s,
          .prefill_s = first_token - started,
          .decode_s = now - first_token};
}

void Service::end(RequestId id, FinishReason reason, std::string error) {
  const Choice choice = std::move(choices_.at(id));
  choices_.erase(id);
  budget_.end(id);
  for (const auto& drafter : drafters_) {
    if (drafter) drafter->end(id);
  }
  FinishEvent event = last_event(choice, reason, std::move(error));
  if (reason != FinishReason::expired) {
    event.reused_tokens = scheduler_.reused(id);
    const bool is_done = reason == FinishReason::eos || reason == FinishReason::stop ||
                         reason == FinishReason::length;
    is_done ? scheduler_.finish(id) : scheduler_.remove(id);
  }
  tell(*choice.events, event);
}

/// The scheduler is not asked: who knows in which state the fault left it.
void Service::fail(const std::string& why) {
  std::map<RequestId, Choice> ended = std::exchange(choices_, {});
  {
    const std::lock_guard lock(mutex_);
    failure_ = why;
    ended.merge(arrivals_);
    cancels_.clear();
    stats_.num_running = 0;
    stats_.num_waiting = 0;
  }
  for (const auto& [id, choice] : ended) {
    tell(*choice.events, last_event(choice, FinishReason::failed, "the engine has failed: " + why));
  }
}

void Service::publish(std::int64_t step_tokens) {
  live_.num_running = scheduler_.num_running();
  live_.num_waiting = scheduler_.num_waiting();
  live_.kv_usage = scheduler_.kv_usage();
  live_.scheduler = scheduler_.stats();
  live_.last_step_tokens = step_tokens;
  if (step_tokens > 0) ++live_.steps;
  const auto expert_tokens = executor_.expert_tokens();
  const std::lock_guard lock(mutex_);
  stats_ = live_;
  expert_tokens_.assign(expert_tokens.begin(), expert_tokens.end());
  num_queued_ = scheduler_.num_queued();
  queued_by_account_ = scheduler_.queued_by_account();
  for (const auto& [id, choice] : arrivals_) ++queued_by_account_[choice.request->caller.account];
}

}  // namespace gauntlet::engine::inline serving
