// A runner under a test's control, with as many steps in flight as asked for: the next token is a
// function of those before it, as the pages hold them.
#pragma once
#include <bit>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "core/check.h"
#include "engine/steps/runner.h"

namespace gauntlet::engine::inline steps {

class FakeRunner final : public Runner {
 public:
  using History = std::vector<std::int32_t>;

  FakeRunner(model::ModelConfig config, StepLimits limits, int most_in_flight)
      : config_(std::move(config)), limits_(limits), most_in_flight_(most_in_flight) {
    limits_.vocab = config_.vocab;
    limits_.takes_trees = true;
  }

  // What a test sets.
  std::function<std::int32_t(const History&)> next = [](const History& history) {
    return history.back() + 1;
  };
  /// The same with fewer experts; none: as with all.
  std::function<std::int32_t(const History&)> next_approximately = {};
  /// Throws where a test wants a step to fail, once it is finished.
  std::function<void(const StepData&)> before_finish = [](const StepData&) {};

  /// From now on it has what a device shares with a draft head: ids in place of choices.
  void share_device() {
    limits_.guess_places = kGuessPlaces;
    guesses_.assign(kGuessPlaces, -1);
    on_device_.assign(static_cast<std::size_t>(limits_.export_layers * limits_.tokens), 0);
    seam_ = {.residuals = on_device_.data(),
             .most_tokens = limits_.tokens,
             .guesses = guesses_.data(),
             .num_guesses = kGuessPlaces};
  }

  // What a test reads.
  std::vector<StepData> steps;
  int most_seen_in_flight = 0;
  /// Positions that a step with all experts saw as one with fewer had left them. A model would then
  /// say something else.
  int approximations_seen = 0;

  const model::ModelConfig& config() const override { return config_; }
  const Plan& plan() const override { return plan_; }
  StepLimits limits() const override { return limits_; }
  int most_in_flight() const override { return most_in_flight_; }
  void watch(LayerProbe*) override {}
  StepTraffic last_traffic() const override { return {}; }
  std::span<const float> last_residuals() const override { return residuals_; }
  bool last_residuals_stayed() const override { return residuals_stayed_; }
  const DeviceSeam* device_seam() const override {
    return limits_.guess_places > 0 ? &seam_ : nullptr;
  }
  std::int64_t weight_bytes() const override { return 0; }

  /// Computed at once, as a device would by the time it is asked.
  Ticket start(StepData step) override {
    check(std::ssize(in_flight_) < most_in_flight_, "too many steps are in flight");
    check_step(step, limits_);
    for (const RowMove& one : step.moves) move(one);
    for (const PageCopy& copy : step.copies) move(copy);
    Flight flight{.ticket = ++started_};
    for (std::size_t i = 0; i < step.items.size(); ++i) compute(step, i, flight.results);
    last_ = flight.results;
    leave_residuals(step);
    flight.step = step;
    steps.push_back(std::move(step));
    in_flight_.push_back(std::move(flight));
    most_seen_in_flight = std::max(most_seen_in_flight, static_cast<int>(in_flight_.size()));
    return started_;
  }

  std::vector<RowResult> finish(Ticket ticket) override {
    check(!in_flight_.empty() && in_flight_.front().ticket == ticket, "steps finish in order");
    const Flight flight = std::move(in_flight_.front());
    in_flight_.pop_front();
    before_finish(flight.step);
    residuals_stayed_ =
        flight.step.residuals_stay && flight.step.num_exported() > 0 && device_seam() != nullptr;
    export_residuals(flight.step);
    return flight.results;
  }

 private:
  /// What a token left in a page.
  struct Cell {
    std::int32_t token = 0;
    bool is_approximate = false;
  };
  struct Flight {
    Ticket ticket = 0;
    StepData step;
    std::vector<RowResult> results;
  };

  /// The same numbers, of all tokens, in place of those of the step started before.
  void leave_residuals(const StepData& step) {
    for (std::size_t at = 0; at < on_device_.size(); ++at) {
      const auto layer = at / static_cast<std::size_t>(limits_.tokens);
      const auto token = at % static_cast<std::size_t>(limits_.tokens);
      on_device_[at] = token < step.tokens.size() ? static_cast<float>(1000 * layer) +
                                                        static_cast<float>(step.tokens[token].id)
                                                  : -1;
    }
  }

  /// A token's id in every number, and a layer's number in thousands.
  void export_residuals(const StepData& step) {
    residuals_.clear();
    if (residuals_stayed_) return;
    for (std::int64_t layer = 0; layer < limits_.export_layers; ++layer) {
      for (const StepData::Item& item : step.items) {
        for (std::int32_t t = 0; item.exports && t < item.num_tokens; ++t) {
          const StepToken& token =
              step.tokens[static_cast<std::size_t>(item.first_token) + static_cast<std::size_t>(t)];
          residuals_.insert(residuals_.end(), static_cast<std::size_t>(config_.hidden),
                            static_cast<float>(1000 * layer + token.id));
        }
      }
    }
  }

  void compute(StepData& step, std::size_t index, std::vector<RowResult>& results) {
    const StepData::Item& item = step.items[index];
    for (std::int32_t t = item.first_token; t < item.first_token + item.num_tokens; ++t) {
      StepToken& token = step.tokens[static_cast<std::size_t>(t)];
      if (is_late_guess(token.id))
        token.id = guesses_.at(static_cast<std::size_t>(place_of_guess(token.id)));
      else if (is_late(token.id))
        token.id = last_.at(static_cast<std::size_t>(row_of_late(token.id))).token;
      if (token.slot >= 0) write(step, index, token);
    }
    for (const StepRow& row : step.rows) {
      if (row.token < item.first_token || row.token >= item.first_token + item.num_tokens) continue;
      const History history = read(step, index, row.token);
      RowResult result;
      if (row.want != Want::nothing) result.token = choose(step, row, history);
      if (row.wants_normed) {
        result.normed.assign(static_cast<std::size_t>(config_.hidden),
                             static_cast<float>(history.back()));
      }
      if (row.target >= 0) result.target_log_probability = next(history) == row.target ? 0 : -1;
      results.push_back(result);
    }
  }

  /// The likeliest token, or the first that a mask lets pass.
  std::int32_t choose(const StepData& step, const StepRow& row, const History& history) const {
    const bool is_approximate = step.experts_per_token > 0 && next_approximately;
    const auto& after = is_approximate ? next_approximately : next;
    const std::int32_t likely = after(history) % static_cast<std::int32_t>(config_.vocab);
    if (row.mask < 0) return likely;
    const auto& mask = step.masks[static_cast<std::size_t>(row.mask)];
    const auto allows = [&](std::int32_t id) { return (mask[id / 32] >> (id % 32) & 1) != 0; };
    if (allows(likely)) return likely;
    for (std::int32_t id = 0; id < config_.vocab; ++id) {
      if (allows(id)) return id;
    }
    return kNoChoice;
  }

  void write(const StepData& step, std::size_t item, const StepToken& token) {
    for (const KvGroup group : {KvGroup::full, KvGroup::sliding}) {
      const std::int32_t page = step.table(item, group)[token.slot / limits_.page_tokens];
      check(page != kNoPage, "a token has no page");
      cells_[{group, page, token.slot % limits_.page_tokens}] = {
          .token = token.id, .is_approximate = step.experts_per_token > 0};
    }
  }

  /// What a token sees: the positions before its item, and of that what its bits say.
  History read(const StepData& step, std::size_t item, std::int32_t token) {
    const std::int32_t context = step.items[item].context;
    const std::int32_t last = step.tokens[static_cast<std::size_t>(token)].position;
    std::uint64_t seen = step.is_tree(step.items[item]) ? step.ancestors[token] : 0;
    History history;
    for (std::int32_t at = 0; at <= last; ++at) {
      std::int32_t place = at;
      if (at >= context && seen != 0) {
        place = context + std::countr_zero(seen);
        seen &= seen - 1;
      }
      const std::int32_t page = step.table(item, KvGroup::full)[place / limits_.page_tokens];
      const Cell& cell = cells_.at({KvGroup::full, page, place % limits_.page_tokens});
      history.push_back(cell.token);
      note(step, cell);
      const std::int32_t sliding = step.table(item, KvGroup::sliding)[place / limits_.page_tokens];
      if (at <= last - config_.sliding_window) continue;
      const Cell& slid = cells_.at({KvGroup::sliding, sliding, place % limits_.page_tokens});
      check(slid.token == history.back(), "a sliding page holds another token");
      note(step, slid);
    }
    return history;
  }

  void note(const StepData& step, const Cell& seen) {
    approximations_seen += seen.is_approximate && step.experts_per_token == 0;
  }

  void move(const RowMove& one) {
    const auto from = cells_.find({one.group, one.from_page, one.from_slot});
    if (from != cells_.end()) cells_[{one.group, one.to_page, one.to_slot}] = from->second;
  }

  void move(const PageCopy& copy) {
    for (std::int64_t slot = 0; slot < limits_.page_tokens; ++slot) {
      const auto from = cells_.find({copy.group, copy.from, slot});
      if (from != cells_.end()) cells_[{copy.group, copy.to, slot}] = from->second;
    }
  }

  model::ModelConfig config_;
  StepLimits limits_;
  const int most_in_flight_;
  Plan plan_;
  std::deque<Flight> in_flight_;
  std::vector<RowResult> last_;   // of the step started last
  std::vector<float> residuals_;  // of the step finished last
  bool residuals_stayed_ = false;
  static constexpr std::int64_t kGuessPlaces = 64;
  std::vector<std::int32_t> guesses_;
  std::vector<float> on_device_;  // [export layers, tokens] of the step started last
  DeviceSeam seam_;
  std::map<std::tuple<KvGroup, std::int32_t, std::int64_t>, Cell> cells_;  // page, slot
  Ticket started_ = 0;
};

}  // namespace gauntlet::engine::inline steps
