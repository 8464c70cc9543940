// What the service hands to the executor, guesses included, and how it runs what failed apart.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/serving/service.h"

namespace gauntlet::engine::inline serving {

namespace {

/// Leading guesses that are what was drawn.
std::int64_t num_right(const Work& work, const ItemResult& result) {
  const auto right = std::ranges::mismatch(result.rows, work.drafts, {}, &RowResult::token).in1;
  return right - result.rows.begin();
}

/// Of numbers [layers, tokens, hidden], those of the first so many tokens.
void keep_first(std::vector<float>& numbers, std::int64_t tokens, std::int64_t kept,
                std::int64_t hidden) {
  const std::int64_t layers = std::ssize(numbers) / (tokens * hidden);
  for (std::int64_t l = 1; l < layers && kept < tokens; ++l) {
    std::copy_n(numbers.begin() + l * tokens * hidden, kept * hidden,
                numbers.begin() + l * kept * hidden);
  }
  numbers.resize(static_cast<std::size_t>(layers * kept * hidden));
}

}  // namespace

std::vector<std::uint32_t> Service::checked(std::vector<std::uint32_t> mask) const {
  check(mask.empty() || std::ssize(mask) * 32 >= executor_.config().vocab,
        "a request's mask is shorter than the vocabulary");
  return mask;
}

std::vector<std::uint32_t> Service::allowed(RequestId id) {
  Choice& choice = choices_.at(id);
  const ServiceRequest& request = *choice.request;
  if (!request.allowed) return {};
  if (!choice.mask) choice.mask = request.allowed.start();
  const auto output = scheduler_.tokens(id).subspan(request.prompt.size());
  for (; choice.masked < std::ssize(output); ++choice.masked) {
    choice.mask->accept(output[choice.masked]);
  }
  return checked(choice.mask->mask());
}

bool Service::has_drafters() const {
  return std::ranges::any_of(drafters_, [](const auto& drafter) { return drafter != nullptr; });
}

void Service::begin_drafts() {
  std::int64_t decoding = 0;
  for (const auto& [id, choice] : choices_) decoding += choice.made > 0;
  budget_.begin_step(decoding);
}

void Service::time_step(const Flight& flight, const std::vector<Outcome>& outcomes,
                        double started_s) {
  TimedStep step{
      .seconds = now_s_() - started_s, .drafts = flight.drafts, .feed_seconds = flight.feed_s};
  for (std::size_t i = 0; i < flight.plan.work.size(); ++i) {
    const Work& work = flight.plan.work[i];
    if (!outcomes[i].error.empty()) return;
    if (work.count != 1 || !work.is_last) {
      step.prompt_tokens += work.count;
      continue;
    }
    const std::int64_t drafted = std::ssize(outcomes[i].result.rows);
    const std::int64_t accepted = num_right(work, outcomes[i].result);
    ++step.requests;
    step.rows += 1 + drafted;
    step.tokens += 1 + accepted;
    budget_.add(work.id, work.drafter, drafted, accepted);
  }
  if (!flight.plan.work.empty()) budget_.add(step);
}

void Service::tell_drafters(Flight& flight, std::vector<Outcome>& outcomes) {
  std::vector<ComputedTokens> tokens;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Work& work = flight.plan.work[i];
    if (!choices_.contains(work.id)) continue;
    ItemResult& result = outcomes[i].result;
    const std::int64_t held = work.count + num_right(work, result);
    keep_first(result.residuals, work.count + std::ssize(result.rows), held,
               executor_.config().hidden);
    tokens.push_back(
        {.id = work.id, .begin = work.begin, .count = held, .residuals = result.residuals});
  }
  const double started_s = now_s_();
  for (const std::size_t drafter : flight.fed) {
    try {
      if (drafters_[drafter]) drafters_[drafter]->computed(tokens);
    } catch (const std::exception& fault) {
      drop(drafter, fault.what());
    }
  }
  flight.feed_s = now_s_() - started_s;
}

bool Service::drafts_now() const {
  return has_drafters() && std::ranges::any_of(choices_, [&](const auto& entry) {
           return wished_drafts(entry.first) > 0;
         });
}

/// One that is adjusted by what was made takes none: its next row would need the guess counted.
std::int64_t Service::wished_drafts(RequestId id) const {
  const auto found = choices_.find(id);
  if (found == choices_.end()) return 0;
  const Choice& choice = found->second;
  if (choice.seen) return 0;
  return std::min(budget_.length(id), choice.limit - choice.made - 1);
}

void Service::drop(std::size_t drafter, const std::string& fault) {
  // Without its guesses every request goes on as it would have.
  live_.draft_fault = fault;
  drafters_[drafter] = nullptr;
  budget_.drop(drafter);
}

void Service::draft(std::size_t drafter, const std::vector<DraftWish>& wishes,
                    const std::vector<Work*>& works, TimedDrafts& timed) {
  if (wishes.empty() || !drafters_[drafter]) return;
  const double started_s = now_s_();
  try {
    std::vector<Draft> drafts = drafters_[drafter]->propose(wishes);
    check(drafts.size() == wishes.size(), "a drafter answers every wish");
    for (std::size_t i = 0; i < drafts.size(); ++i) {
      Draft& draft = drafts[i];
      if (std::ssize(draft) > wishes[i].most)
        draft.resize(static_cast<std::size_t>(wishes[i].most));
      works[i]->drafts = std::move(draft);
      works[i]->drafter = drafter;
      timed.longest = std::max(timed.longest, wishes[i].most);
    }
  } catch (const std::exception& fault) {
    drop(drafter, fault.what());
  }
  timed.requests += std::ssize(wishes);
  timed.seconds += now_s_() - started_s;
}

void Service::draft(Flight& flight) {
  for (std::size_t d = 0; d < drafters_.size(); ++d) {
    if (drafters_[d] && budget_.feeds(d)) flight.fed.push_back(d);
  }
  flight.drafts.resize(drafters_.size());
  std::vector<std::pair<Work*, std::vector<DraftPick>>> open;
  for (Work& work : flight.plan.work) {
    if (work.room_for_drafts == 0 || scores_prompt(work)) continue;
    open.emplace_back(&work, budget_.picks(work.id));
  }
  for (std::size_t turn = 0; turn < drafters_.size(); ++turn) {
    std::erase_if(open, [&](const auto& one) {
      return !one.first->drafts.empty() || one.second.size() <= turn;
    });
    for (std::size_t d = 0; d < drafters_.size(); ++d) {
      std::vector<DraftWish> wishes;
      std::vector<Work*> works;
      for (const auto& [work, picks] : open) {
        if (picks[turn].drafter != d) continue;
        wishes.push_back({.id = work->id,
                          .sequence = work->sequence,
                          .tokens = scheduler_.tokens(work->id),
                          .most = std::min(work->room_for_drafts, picks[turn].length),
                          .sampling = sampling_after(*work)});
        works.push_back(work);
      }
      draft(d, wishes, works, flight.drafts[d]);
    }
  }
}

void Service::add_drafts(const Work& work, BatchItem& item) {
  const Choice& choice = choices_.at(work.id);
  const model::ModelConfig& config = executor_.config();
  const auto is_end = [&](std::int32_t token) {
    return choice.request->end_of_sequence == EndOfSequence::ends &&
           std::ranges::find(config.eos_ids, token) != config.eos_ids.end();
  };
  std::unique_ptr<MaskCursor> ahead;
  for (const std::int32_t token : work.drafts) {
    const bool is_known = token >= 0 && token < config.vocab;
    if (!is_known || is_end(token) || !allows(item.allowed, token)) return;
    std::vector<std::uint32_t> mask;
    if (choice.mask) {
      try {
        if (!ahead) ahead = choice.mask->fork();
        ahead->accept(token);
        mask = checked(ahead->mask());
      } catch (const std::exception&) {
        return;  // a mask that cannot be had now is asked for again when the token is there
      }
    }
    item.rows.push_back({.token = std::ssize(item.tokens) - 1,
                         .want = item.want,
                         .sampling = item.sampling,
                         .allowed = std::exchange(item.allowed, std::move(mask))});
    item.tokens.push_back(token);
    ++item.num_drafts;
    ++item.sampling.step;
    item.role = ItemRole::decode;
  }
}

/// Of the token after these. Steps under way have drawn before it.
SamplingParams Service::sampling_after(const Work& work) const {
  const Choice& choice = choices_.at(work.id);
  SamplingParams sampling = choice.sampling;
  sampling.step = work.begin + work.count - std::ssize(choice.request->prompt);
  return sampling;
}

BatchItem Service::item_for(const Work& work, Exports exports) {
  const auto known = scheduler_.tokens(work.id);
  BatchItem item{.sequence = work.sequence};
  if (work.begin + work.count <= std::ssize(known)) {
    const auto tokens = known.subspan(work.begin, work.count);
    item.tokens.assign(tokens.begin(), tokens.end());
  } else {
    item.tokens = {late_token(*work.late_item)};
  }
  if (work.is_kept_slot) return item;
  item.want = Want::nothing;
  item.exports = exports == Exports::residuals;
  const Choice& choice = choices_.at(work.id);
  if (work.is_last) {
    item.sampling = sampling_after(work);
    item.allowed = allowed(work.id);
    const std::optional<int> shown = choice.request->top_log_probs;
    if (choice.limit > 0) {
      item.want = choice.seen || shown > 0 ? Want::logits
                  : shown                  ? Want::log_probability
                                           : Want::token;
    }
  }
  if (scores_prompt(work)) score_prompt(work, item);
  if (!work.drafts.empty()) add_drafts(work, item);
  return item;
}

std::vector<BatchItem> Service::items_for(const std::vector<Work>& work, Exports exports) {
  std::vector<BatchItem> items;
  items.reserve(work.size());
  for (const Work& one : work) items.push_back(item_for(one, exports));
  return items;
}

/// A step that throws is halved until only those requests fail which fail alone. With one fault
/// among them, that computes everybody else's part about twice.
std::vector<Service::Outcome> Service::run_apart(const std::vector<Work>& work) {
  if (work.empty()) return {};
  try {
    std::vector<ItemResult> results =
        executor_.collect(executor_.submit(items_for(work, Exports::none)));
    std::vector<Outcome> outcomes(work.size());
    for (std::size_t i = 0; i < work.size(); ++i) outcomes[i].result = std::move(results[i]);
    return outcomes;
  } catch (const std::exception& fault) {
    return run_halves(work, fault.what());
  }
}

std::vector<Service::Outcome> Service::run_halves(const std::vector<Work>& work,
                                                  const std::string& fault) {
  std::vector<Outcome> outcomes(work.size());
  std::vector<std::size_t> again;
  for (std::size_t i = 0; i < work.size(); ++i) {
    const bool is_done = executor_.kv().length(work[i].sequence) != work[i].begin;
    if (work.size() == 1 || is_done) {
      outcomes[i].error = "a step failed: " + fault;
    } else {
      again.push_back(i);
    }
  }
  const std::size_t middle = again.size() / 2;
  const auto run_half = [&](std::size_t begin, std::size_t end) {
    std::vector<Work> half;
    for (std::size_t i = begin; i < end; ++i) half.push_back(work[again[i]]);
    std::vector<Outcome> some = run_apart(half);
    for (std::size_t i = begin; i < end; ++i) outcomes[again[i]] = std::move(some[i - begin]);
  };
  run_half(0, middle);
  run_half(middle, again.size());
  return outcomes;
}

/// After a step in which nobody succeeded: was it they, or is it the executor? A request that fails
/// alone must not end the service, and a broken device must not fail requests one by one for ever.
void Service::check_executor() {
  KvPool& pool = executor_.kv();
  const SequenceId sequence = pool.create();
  try {
    if (pool.reserve(sequence, 1)) {
      executor_.collect(executor_.submit({{.sequence = sequence, .tokens = {0}}}));
    }
  } catch (const std::exception&) {
    pool.free(sequence);
    throw;
  }
  pool.free(sequence);
}

}  // namespace gauntlet::engine::inline serving
