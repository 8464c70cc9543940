// Requests that arrive over time at the engine's own loop, without a network: what each waited for
// its first token and between tokens, and what came out in all.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stats/blocks.h"
#include "study/bench/duel.h"
#include "study/bench/workbench.h"

namespace gauntlet::study {

struct PlannedRequest {
  double at_s = 0;
  std::vector<std::int32_t> prompt;
  std::int64_t max_tokens = 0;
};

/// The mix: half of the prompts share a beginning; the rest of each, and the outputs, vary in
/// length. Lengths scale with what the model has room for.
struct RequestMix {
  std::int64_t shared_tokens = 96;
  std::int64_t own_tokens[2] = {16, 96};
  std::int64_t output_tokens[2] = {8, 40};
};
/// `per_second` 0: all at once; otherwise a Poisson process.
std::vector<PlannedRequest> plan_requests(const RequestMix& mix, std::int64_t count,
                                          double per_second, const std::vector<std::int32_t>& text);

/// What a run of requests came to.
struct ServeOutcome {
  double seconds = 0;  // from the start to the last token
  std::int64_t output_tokens = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t reused_tokens = 0;
  std::vector<double> first_token_ms;    // of each request, since it was due
  std::vector<double> between_token_ms;  // of each token after the first
  std::vector<double> answer_ms;         // of each request, since it was due, to its last token
  double mean_queue = 0;                 // requests that wait for their first token, over the steps
  std::int64_t max_queue = 0;
  std::optional<engine::SpeculationCounts> speculation;  // where somebody guesses
};
struct Percentiles {
  double p50 = 0;
  double p95 = 0;
};
/// What is kept of it.
struct ServeFigures {
  double seconds = 0;
  std::int64_t requests = 0;
  std::int64_t output_tokens = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t reused_tokens = 0;
  double tok_s = 0;
  double requests_per_s = 0;
  Percentiles ttft_ms;
  Percentiles tpot_ms;    // between tokens
  Percentiles answer_ms;  // 0 in files of earlier versions
  double mean_queue = 0;
  std::int64_t max_queue = 0;
  std::optional<engine::SpeculationCounts> speculation;  // where somebody guesses
};
ServeFigures figures_of(const ServeOutcome& outcome);
/// Of a load that the stack can serve a part of.
struct LoadFigures {
  double offered_per_s = 0;
  ServeFigures served;
};
/// Who serves, and by which policy.
struct ServeSide {
  engine::Executor& executor;
  const ServingPolicy& policy;
};

Expected<ServeOutcome> serve(const Workbench& bench, const ServeSide& side,
                             const std::vector<PlannedRequest>& requests);

/// The nearest of the values; 0 of none.
double percentile(std::vector<double> values, double part);

/// The same requests on two sides in turns. Metrics, lower being better: makespan, first_token_p50,
/// answer_p50; and beside them between_tokens_p95, the price of letting requests in early, which
/// the time to the whole answer includes.
struct ServeDuel {
  struct Metric {
    std::string name;
    bool beside = false;          // shown, but no part of the gain
    stats::ProcessBlocks blocks;  // ns, of sides a and b
  };
  std::vector<Metric> metrics;
  ServeFigures a, b;                          // the last of each
  std::optional<lab::Conditions> conditions;  // none in journals of earlier versions
};
struct ServeSides {
  ServeSide a, b;
};
Expected<ServeDuel> serve_duel(const Workbench& bench, const ServeSides& sides,
                               const std::vector<PlannedRequest>& requests,
                               const DuelBudget& budget);

}  // namespace gauntlet::study
