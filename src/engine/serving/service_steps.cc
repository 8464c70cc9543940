// What the service hands to the executor, guesses included, and how it runs what failed apart.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/serving/service.h"

namespace gauntlet::engine::inline serving {
namespace {

/// Of a guess that no row is made for.
constexpr std::int32_t kCut = -1;

bool has_later_sibling(const Draft& guesses, std::size_t i) {
  for (std::size_t j = i + 1; guesses.is_tree() && j < guesses.size(); ++j) {
    if (guesses.parent(j) == guesses.parent(i)) return true;
  }
  return false;
}

/// Of numbers [layers, tokens, hidden], those of the first `known` tokens and of a path of guesses
/// behind them.
void keep_right(std::vector<float>& numbers, std::int64_t tokens, std::int64_t known,
                std::span<const std::int32_t> path, std::int64_t hidden) {
  const std::int64_t layers = std::ssize(numbers) / (tokens * hidden);
  auto to = numbers.begin();
  for (std::int64_t l = 0; l < layers; ++l) {
    const auto layer = numbers.begin() + l * tokens * hidden;
    to = std::copy_n(layer, known * hidden, to);
    for (const std::int32_t guess : path) {
      to = std::copy_n(layer + (known + guess) * hidden, hidden, to);
    }
  }
  numbers.erase(to, numbers.end());
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
  const double now_s = now_s_();
  if (executor_.most_in_flight() > 1) last_end_s_ = now_s;
  TimedStep step{.seconds = now_s - started_s,
                 .drafts = flight.drafts,
                 .feed_seconds = flight.feed_s,
                 .fed = flight.fed,
                 .fills = !flight.is_ahead && !flights_.empty()};
  for (std::size_t i = 0; i < flight.plan.work.size(); ++i) {
    const Work& work = flight.plan.work[i];
    if (!outcomes[i].error.empty()) return;
    if (work.count != 1 || !work.is_last) {
      step.prompt_tokens += work.count;
      continue;
    }
    const std::int64_t accepted = std::ssize(accepted_path(work.drafts, outcomes[i].drawn()));
    ++step.requests;
    step.rows += 1 + std::ssize(work.drafts);
    step.tokens += 1 + accepted;
    budget_.add(work.id, work.drafter, work.drafts.num_levels(), accepted);
  }
  if (!flight.plan.work.empty()) budget_.add(step);
}

Service::Exports Service::exports_for(const Flight& flight) const {
  if (flight.fed.empty()) return Exports::none;
  // Of a prompt there are many: those are brought to the host, and kept there until they are read.
  const bool all_decode = std::ranges::all_of(
      flight.plan.work, [](const Work& work) { return work.count == 1 && work.is_last; });
  const bool all_on_device = std::ranges::all_of(
      flight.fed, [&](std::size_t d) { return drafters_[d] && drafters_[d]->reads_on_device(); });
  return all_decode && all_on_device ? Exports::residuals_that_stay : Exports::residuals;
}

void Service::reveal_drafts(Flight& flight) {
  for (std::size_t d = 0; d < flight.drafts.size(); ++d) {
    if (drafters_[d] && flight.drafts[d].requests > 0) {
      flight.drafts[d].seconds += drafters_[d]->late_seconds();
    }
  }
  for (Work& work : flight.plan.work) {
    if (!work.drafts.empty() && is_late_guess(work.drafts[0])) {
      drafters_[work.drafter]->reveal(work.drafts);
    }
  }
}

void Service::tell_drafters(Flight& flight, std::vector<Outcome>& outcomes) {
  std::vector<ComputedTokens> tokens;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Work& work = flight.plan.work[i];
    if (!choices_.contains(work.id)) continue;
    ItemResult& result = outcomes[i].result;
    const auto path = accepted_path(work.drafts, outcomes[i].drawn());
    check(!result.device_row || !work.drafts.is_tree(), "rows of a path do not follow each other");
    keep_right(result.residuals, work.count + std::ssize(result.rows), work.count, path,
               executor_.config().hidden);
    tokens.push_back({.id = work.id,
                      .begin = work.begin,
                      .count = work.count + std::ssize(path),
                      .residuals = result.residuals,
                      .device_row = result.device_row});
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

void Service::bring_together(const Work& work, const std::vector<std::int32_t>& path) {
  std::vector<std::int64_t> places;
  for (const std::int32_t guess : path) places.push_back(work.begin + work.count + guess);
  executor_.kv().bring_together(work.sequence, places);
}

std::vector<std::int32_t> Service::Outcome::drawn() const {
  std::vector<std::int32_t> tokens;
  for (const RowResult& row : result.rows) tokens.push_back(row.token);
  tokens.push_back(result.token);
  return tokens;
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
  const std::int64_t longest = choice.limit - choice.made - 1;
  if (choice.seen || longest <= 0) return 0;
  const std::int64_t wished = std::min(budget_.length(id), kMostGuesses);
  return tree_.is_chain() ? std::min(wished, longest) : wished;
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
      check(drafts[i].is_well_formed(), "a guess follows one that comes before it");
      drafts[i].shorten(wishes[i].most);
      works[i]->drafts = std::move(drafts[i]);
      works[i]->drafter = drafter;
      timed.longest = std::max(timed.longest, wishes[i].most);
    }
  } catch (const std::exception& fault) {
    drop(drafter, fault.what());
  }
  timed.requests += std::ssize(wishes);
  timed.seconds += now_s_() - started_s;
}

TreeShape Service::tree_for(const Work& work, const Drafter& drafter) const {
  const Choice& choice = choices_.at(work.id);
  const TreeShape tree = drafter.fans_out() ? tree_ : TreeShape();
  return {.width = tree.width, .depth = std::min(tree.depth, choice.limit - choice.made - 1)};
}

void Service::draft(Flight& flight) {
  for (std::size_t d = 0; d < drafters_.size(); ++d) {
    if (drafters_[d] && budget_.feeds(d)) flight.fed.push_back(d);
  }
  flight.drafts.resize(drafters_.size());
  std::vector<std::pair<Work*, std::vector<DraftPick>>> open;
  for (Work& work : flight.plan.work) {
    if (work.room_for_drafts == 0 || scores_prompt(choices_.at(work.id), work)) continue;
    open.emplace_back(&work, budget_.picks(work.id));
  }
  for (std::size_t turn = 0; turn < drafters_.size(); ++turn) {
    std::erase_if(open, [&](const auto& one) {
      return !one.first->drafts.empty() || one.second.size() <= turn;
    });
    for (std::size_t d = 0; d < drafters_.size(); ++d) {
      if (!drafters_[d]) continue;
      // Asked again, it would write over guesses that the step has yet to read.
      if (flight.drafts[d].requests > 0 && drafters_[d]->reads_on_device()) continue;
      std::vector<DraftWish> wishes;
      std::vector<Work*> works;
      for (const auto& [work, picks] : open) {
        if (picks[turn].drafter != d) continue;
        const TreeShape tree = tree_for(*work, *drafters_[d]);
        const std::int64_t most = std::min(work->room_for_drafts, picks[turn].length);
        wishes.push_back({.id = work->id,
                          .sequence = work->sequence,
                          .tokens = scheduler_.tokens(work->id),
                          .most = tree.is_chain() ? std::min(most, tree.depth) : most,
                          .sampling = sampling_after(*work),
                          .tree = tree,
                          .may_be_late = !choices_.at(work->id).request->allowed});
        works.push_back(work);
      }
      draft(d, wishes, works, flight.drafts[d]);
    }
  }
}

void Service::add_drafts(Work& work, BatchItem& item) {
  const Choice& choice = choices_.at(work.id);
  const model::ModelConfig& config = executor_.config();
  const auto is_end = [&](std::int32_t token) {
    return choice.request->end_of_sequence == EndOfSequence::ends &&
           std::ranges::find(config.eos_ids, token) != config.eos_ids.end();
  };
  const auto& drafter = drafters_[work.drafter];
  const bool may_be_late = drafter && drafter->reads_on_device() && !choice.request->allowed;
  // By row, of the last known token and of each guess that stays: what may follow it, and a cursor
  // there, which its last guess takes over.
  std::vector<std::vector<std::uint32_t>> masks;
  masks.push_back(std::move(item.allowed));
  std::vector<std::unique_ptr<MaskCursor>> cursors(1);
  std::vector<std::int64_t> depths = {0};
  const Draft guesses = std::exchange(work.drafts, {});
  std::vector<std::int32_t> row_of(guesses.size(), kCut);
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    const std::int32_t row = guesses.parent(i) < 0 ? 0 : row_of[guesses.parent(i)];
    if (row == kCut || depths[row] == choice.limit - choice.made - 1) continue;
    const std::int32_t token = guesses[i];
    const bool is_known = token >= 0 && token < config.vocab;
    // Of a late guess nothing is to be seen; where it is an end, the row before it draws that.
    const bool may_be = is_known ? !is_end(token) && allows(masks[row], token)
                                 : is_late_guess(token) && may_be_late;
    if (!may_be) continue;
    std::unique_ptr<MaskCursor> cursor;
    std::vector<std::uint32_t> mask;
    if (choice.mask) {
      try {
        cursor = row == 0                        ? choice.mask->fork()
                 : has_later_sibling(guesses, i) ? cursors[row]->fork()
                                                 : std::move(cursors[row]);
        cursor->accept(token);
        mask = checked(cursor->mask());
      } catch (const std::exception&) {
        continue;  // a mask that cannot be had now is asked for again when the token is there
      }
    }
    work.drafts.add(token, row - 1);
    row_of[i] = static_cast<std::int32_t>(work.drafts.size());
    masks.push_back(std::move(mask));
    cursors.push_back(std::move(cursor));
    depths.push_back(depths[row] + 1);
  }
  work.drafts.simplify();
  const std::int64_t drawn = item.sampling.step;
  for (std::size_t row = 0; row < work.drafts.size(); ++row) {
    item.rows.push_back({.token = std::ssize(item.tokens) - 1,
                         .want = item.want,
                         .sampling = item.sampling,
                         .allowed = std::move(masks[row])});
    item.tokens.push_back(work.drafts[row]);
    item.sampling.step = drawn + depths[row + 1];
  }
  item.allowed = std::move(masks.back());
  item.num_drafts = std::ssize(work.drafts);
  item.parents = work.drafts.parents;
  if (item.num_drafts > 0) item.role = ItemRole::decode;
}

/// Of the token after these. Steps under way have drawn before it.
SamplingParams Service::sampling_after(const Work& work) const {
  const Choice& choice = choices_.at(work.id);
  SamplingParams sampling = choice.sampling;
  sampling.step = work.begin + work.count - std::ssize(choice.request->prompt);
  return sampling;
}

BatchItem Service::item_for(Work& work, Exports exports) {
  const auto known = scheduler_.tokens(work.id);
  BatchItem item{.sequence = work.sequence};
  if (work.begin + work.count <= std::ssize(known)) {
    const auto tokens = known.subspan(work.begin, work.count);
    item.tokens.assign(tokens.begin(), tokens.end());
  } else {
    item.tokens = {late_token(*work.late_item)};
  }
  item.residuals_stay = exports == Exports::residuals_that_stay;
  if (work.is_kept_slot) return item;
  item.want = Want::nothing;
  item.exports = exports != Exports::none;
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
  if (scores_prompt(choice, work)) score_prompt(work, item);
  if (!work.drafts.empty()) add_drafts(work, item);
  return item;
}

std::vector<BatchItem> Service::items_for(std::vector<Work>& work, Exports exports) {
  std::vector<BatchItem> items;
  items.reserve(work.size());
  for (Work& one : work) items.push_back(item_for(one, exports));
  return items;
}

/// A step that throws is halved until only those requests fail which fail alone. With one fault
/// among them, that computes everybody else's part about twice.
std::vector<Service::Outcome> Service::run_apart(std::vector<Work> work) {
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
