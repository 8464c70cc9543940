#include "load/results/metrics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace gauntlet::load::inline results {
namespace {

constexpr std::size_t kSlices = 120;
constexpr double kFewestSteady = 0.25;  // of the time in which requests are sent
using Records = std::vector<const RequestRecord*>;

/// Calls f(time, tokens) for each event that carried tokens; tokens that showed nothing come at the
/// end.
template <class F>
void for_tokens(const RequestRecord& record, F&& f) {
  const auto tokens = static_cast<double>(record.output_tokens);
  if (record.num_events == 0) return f(record.first_s, tokens);
  const double weight = tokens / static_cast<double>(record.num_events);
  double at_s = record.first_s;
  f(at_s, weight);
  for (const float gap_s : record.gaps_s) f(at_s += gap_s, weight);
}

/// Equal parts of a span of time, each with what was counted in it.
class Parts {
 public:
  Parts(double from_s, double to_s, std::size_t count)
      : from_s_(from_s), part_s_((to_s - from_s) / static_cast<double>(count)), counts(count) {}
  void add(double at_s, double amount) {
    const double part = (at_s - from_s_) / part_s_;
    // The last answer's end is the end of the window, and belongs to it.
    if (part < 0 || part > static_cast<double>(counts.size()) + 1e-9) return;
    counts[std::min(counts.size() - 1, static_cast<std::size_t>(part))] += amount;
  }
  stats::Interval per_s(std::uint64_t seed) const {
    return stats::ratio_of_sums(counts, std::vector<double>(counts.size(), part_s_), seed);
  }

 private:
  double from_s_;
  double part_s_;

 public:
  std::vector<double> counts;
};

struct Window {
  double from_s = 0;
  double last_due_s = 0;
  double last_sent_s = 0;
  double to_s = 0;
};

Window window_of(const Records& records) {
  Window window{.from_s = records.front()->scheduled_s};
  for (const RequestRecord* record : records) {
    window.last_due_s = std::max(window.last_due_s, record->scheduled_s);
    window.last_sent_s = std::max(window.last_sent_s, record->sent_s);
    window.to_s = std::max(window.to_s, record->end_s);
  }
  return window;
}

using Value = std::function<void(const RequestRecord&, std::vector<float>&)>;

/// A latency over all that were answered, in blocks of neighbours.
stats::Percentiles over(const Records& ok, const Value& value, std::uint64_t seed) {
  const std::size_t num_blocks = std::clamp<std::size_t>(ok.size() / 2, 1, kBlocks);
  std::vector<std::vector<float>> blocks(num_blocks);
  for (std::size_t i = 0; i < ok.size(); ++i) value(*ok[i], blocks[i * num_blocks / ok.size()]);
  return stats::percentiles(blocks, seed);
}

std::vector<float> curve(const Records& ok, const Value& value) {
  std::vector<float> all;
  for (const RequestRecord* record : ok) value(*record, all);
  std::ranges::sort(all);
  std::vector<float> points;
  if (all.empty()) return points;
  for (int percent = 1; percent <= 100; ++percent) {
    points.push_back(static_cast<float>(stats::percentile(all, percent)));
  }
  return points;
}

void add_latencies(const Records& ok, std::uint64_t seed, PointResult& out) {
  const auto single = [](auto get) {
    return Value([get](const RequestRecord& record, std::vector<float>& into) {
      into.push_back(static_cast<float>(get(record)));
    });
  };
  const Value ttft = single([](const RequestRecord& r) { return r.ttft_s(); });
  const Value e2e = single([](const RequestRecord& r) { return r.e2e_s(); });
  const Value lag = single([](const RequestRecord& r) { return r.sent_s - r.scheduled_s; });
  const Value tpot = [](const RequestRecord& r, std::vector<float>& into) {
    if (r.output_tokens > 1) into.push_back(static_cast<float>(r.tpot_s()));
  };
  const Value itl = [](const RequestRecord& r, std::vector<float>& into) {
    into.insert(into.end(), r.gaps_s.begin(), r.gaps_s.end());
  };
  out.ttft_s = over(ok, ttft, seed);
  out.tpot_s = over(ok, tpot, seed + 1);
  out.itl_s = over(ok, itl, seed + 2);
  out.e2e_s = over(ok, e2e, seed + 3);
  out.send_lag_s = over(ok, lag, seed + 4);
  out.curves = {{"ttft_s", curve(ok, ttft)},
                {"tpot_s", curve(ok, tpot)},
                {"itl_s", curve(ok, itl)},
                {"e2e_s", curve(ok, e2e)}};
}

void add_goodput(const Records& records, const Slo& slo, std::uint64_t seed, PointResult& out) {
  const std::size_t num_blocks = std::clamp<std::size_t>(records.size() / 2, 1, kBlocks);
  std::vector<double> good(num_blocks), all(num_blocks);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::size_t block = i * num_blocks / records.size();
    good[block] += slo.is_met_by(*records[i]);
    all[block] += 1;
  }
  out.good_share = stats::ratio_of_sums(good, all, seed);
  out.good_share.hi = std::min(out.good_share.hi, 1.0);
  out.goodput_per_s = out.good_share.times(out.offered_per_s);
}

/// Warm-up requests count here: what still runs of them is load like any other.
std::optional<SteadyRates> steady_rates(const RunLog& log, const Window& window,
                                        double median_e2e_s, std::uint64_t seed) {
  const double from_s = window.from_s + median_e2e_s;
  const double span_s = window.last_sent_s - window.from_s;
  if (!(span_s > 0) || window.last_sent_s - from_s < kFewestSteady * span_s) return std::nullopt;
  Parts requests(from_s, window.last_sent_s, kBlocks);
  Parts tokens(from_s, window.last_sent_s, kBlocks);
  for (const RequestRecord& record : log.requests) {
    if (record.is_ok()) requests.add(record.end_s, 1);
    for_tokens(record, [&](double at_s, double weight) { tokens.add(at_s, weight); });
  }
  return SteadyRates{.seconds = window.last_sent_s - from_s,
                     .requests_per_s = requests.per_s(seed),
                     .output_tokens_per_s = tokens.per_s(seed + 1)};
}

void add_rates(const Records& records, const Window& window, std::uint64_t seed, PointResult& out) {
  Parts requests(window.from_s, window.to_s, kBlocks);
  Parts output(window.from_s, window.to_s, kBlocks);
  Parts total(window.from_s, window.to_s, kBlocks);
  for (const RequestRecord* record : records) {
    if (!record->is_ok()) continue;
    requests.add(record->end_s, 1);
    total.add(record->first_s, static_cast<double>(record->prompt_tokens));
    for_tokens(*record, [&](double at_s, double weight) {
      output.add(at_s, weight);
      total.add(at_s, weight);
    });
  }
  out.requests_per_s = requests.per_s(seed);
  out.output_tokens_per_s = output.per_s(seed + 1);
  out.total_tokens_per_s = total.per_s(seed + 2);
}

void add_concurrency(const Records& records, const Window& window, PointResult& out) {
  std::vector<std::pair<double, int>> changes;
  double busy_s = 0;
  for (const RequestRecord* record : records) {
    busy_s += record->end_s - record->sent_s;
    changes.emplace_back(record->sent_s, 1);
    changes.emplace_back(record->end_s, -1);
  }
  std::ranges::sort(changes);  // at one time, those who leave first
  std::int64_t running = 0;
  for (const auto& [at_s, change] : changes) {
    running += change;
    out.concurrency_max = std::max(out.concurrency_max, running);
  }
  out.concurrency_mean = busy_s / (window.to_s - window.from_s);
}

void add_slices(const RunLog& log, PointResult& out) {
  double end_s = 0;
  for (const RequestRecord& record : log.requests) end_s = std::max(end_s, record.end_s);
  if (!(end_s > 0)) return;
  out.slice_s = end_s / static_cast<double>(kSlices);
  Parts tokens(0, end_s, kSlices);
  std::vector<std::vector<float>> ttfts(kSlices);
  out.slices.resize(kSlices);
  for (const RequestRecord& record : log.requests) {
    for_tokens(record, [&](double at_s, double weight) { tokens.add(at_s, weight); });
    const auto slice_at = [&](double at_s) {
      return std::min(kSlices - 1, static_cast<std::size_t>(std::max(0.0, at_s / out.slice_s)));
    };
    if (record.is_ok()) {
      ttfts[slice_at(record.scheduled_s)].push_back(static_cast<float>(record.ttft_s()));
    }
    for (std::size_t i = slice_at(record.sent_s); i <= slice_at(record.end_s); ++i) {
      const double begin_s = static_cast<double>(i) * out.slice_s;
      const double shared_s =
          std::min(record.end_s, begin_s + out.slice_s) - std::max(record.sent_s, begin_s);
      out.slices[i].in_flight += std::max(0.0, shared_s) / out.slice_s;
    }
  }
  for (std::size_t i = 0; i < kSlices; ++i) {
    out.slices[i].output_tokens_per_s = tokens.counts[i] / out.slice_s;
    if (ttfts[i].empty()) continue;
    std::ranges::sort(ttfts[i]);
    out.slices[i].ttft_s = stats::percentile(ttfts[i], 50);
  }
}

void add_counts(const Records& records, const RunLog& log, PointResult& out) {
  std::int64_t num_events = 0;
  for (const RequestRecord* record : records) {
    if (!record->is_ok()) {
      ErrorCount& error = out.errors[record->error_name()];
      ++error.count;
      if (error.example.empty()) error.example = record->words;
      continue;
    }
    ++out.num_ok;
    num_events += record->num_events;
    out.prompt_tokens += record->prompt_tokens;
    out.cached_tokens += record->cached_tokens;
    out.output_tokens += record->output_tokens;
    out.is_counted_by_server = out.is_counted_by_server && record->has_usage;
  }
  if (num_events > 0) {
    out.tokens_per_event = static_cast<double>(out.output_tokens) / static_cast<double>(num_events);
  }
  std::int64_t all_events = 0;
  for (const RequestRecord& record : log.requests) all_events += record.num_events;
  if (all_events > 0) {
    out.client_us_per_event = log.client_cpu_s * 1e6 / static_cast<double>(all_events);
  }
}

}  // namespace

PointResult summarize(const RunLog& log, const ArrivalSpec& arrivals, const Slo& slo,
                      std::uint64_t seed) {
  PointResult out{.arrivals = arrivals, .is_interrupted = log.is_interrupted};
  Records records, ok;
  for (const RequestRecord& record : log.requests) {
    if (record.index < log.num_warmup || record.outcome == Outcome::interrupted) continue;
    records.push_back(&record);
  }
  out.num_requests = std::ssize(records);
  if (records.empty()) return out;
  std::ranges::sort(records, {}, [](const RequestRecord* record) {
    return std::pair(record->scheduled_s, record->index);
  });
  std::ranges::copy_if(records, std::back_inserter(ok), &RequestRecord::is_ok);
  add_counts(records, log, out);
  const Window window = window_of(records);
  out.window_s = window.to_s - window.from_s;
  if (!(out.window_s > 0)) return out;
  const auto count = static_cast<double>(records.size());
  const double due_s = window.last_due_s - window.from_s;
  const bool is_open = arrivals.kind != ArrivalKind::closed;
  out.offered_per_s = is_open && due_s > 0 ? (count - 1) / due_s : count / out.window_s;
  add_rates(records, window, seed, out);
  add_concurrency(records, window, out);
  add_goodput(records, slo, seed + 10, out);
  add_slices(log, out);
  if (ok.empty()) return out;
  add_latencies(ok, seed + 20, out);
  out.steady = steady_rates(log, window, out.e2e_s.median.value, seed + 30);
  return out;
}

}  // namespace gauntlet::load::inline results
