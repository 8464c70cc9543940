// Writes the pages of invented load tests: a sweep through saturation, a single run, and one in
// which nothing was answered and every string tries to break out of the page.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>

#include "load/results/result.h"
#include "load/workload/variates.h"

namespace gauntlet::load {
namespace {

constexpr const char* kHostile =
    "</script><img src=x onerror=\"window.hacked = 1\"><!-- <b>bold</b> &amp; \"quoted\"";
constexpr Slo kSlo{.ttft_s = 1, .tpot_s = 0.05};

/// A server of so many answers per second: a queue in front, and tokens that slow down with the
/// load.
RunLog sample_log(double rate_per_s, double capacity_per_s) {
  RunLog log;
  Variates variates(3, 0);
  Arrivals arrivals({.rate_per_s = rate_per_s}, 1);
  double free_s = 0;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(rate_per_s * 30) + 20; ++i) {
    RequestRecord record{.index = i, .scheduled_s = arrivals.next_s()};
    record.sent_s = record.scheduled_s + 1e-4 * variates.unit();
    free_s = std::max(free_s, record.sent_s) + variates.gamma(2, 0.5 / capacity_per_s);
    record.first_s = free_s + 0.03;
    const double load = std::min(1.0, rate_per_s / capacity_per_s);
    record.end_s = record.first_s;
    for (int token = 1; token < 64; ++token) {
      const double gap_s = variates.gamma(4, (0.006 + 0.03 * load * load) / 4);
      record.gaps_s.push_back(static_cast<float>(gap_s));
      record.end_s += gap_s;
    }
    record.num_events = record.output_tokens = 64;
    record.prompt_tokens = 128;
    record.has_usage = true;
    record.http_status = 200;
    if (record.first_s - record.scheduled_s > 8) {
      record.outcome = Outcome::http_status;
      record.http_status = 429;
      record.words = "too many requests wait: try again later";
      record.end_s = record.sent_s + 0.002;
    }
    log.requests.push_back(std::move(record));
  }
  log.client_cpu_s = 0.2;
  return log;
}

LoadResult described(LoadResult result) {
  result.started_at = 1794709000;
  result.command_line = "gauntlet load --sweep rate=1..64 --duration 30 --slo ttft=1,tpot=0.05";
  result.version = "0.1.0 (334856a1c0de)";
  result.url = "http://127.0.0.1:8000";
  result.model = "gauntlet-tiny";
  result.workload = {{"arrivals", "poisson"},
                     {"prompt tokens", "lognormal:128,0.8"},
                     {"output tokens", "64"},
                     {"prompts", "124 token ids of common words"},
                     {"duration", "30 s"}};
  result.slo = kSlo;
  return result;
}

PointResult point_at(double rate_per_s) {
  return summarize(sample_log(rate_per_s, 20), {.rate_per_s = rate_per_s}, kSlo, 1);
}

LoadResult sample_sweep() {
  auto swept = sweep({.from = 1, .to = 64}, kSlo,
                     [](double rate) { return Expected<PointResult>(point_at(rate)); });
  LoadResult result;
  result.sweep_key = SweepKey::rate;
  result.points = swept->points;
  result.loads = swept->loads;
  result.best = swept->best;
  result.capacity_per_s = swept->capacity_per_s;
  result.sustained = swept->sustained;
  result.is_saturated = swept->is_saturated;
  return described(std::move(result));
}

LoadResult hostile() {
  RunLog log;
  RequestRecord& record = log.requests.emplace_back();
  record.end_s = record.first_s = 1;
  record.outcome = Outcome::server_error;
  record.words = kHostile;
  LoadResult result = described({});
  result.points.push_back(summarize(log, {}, kSlo, 1));
  result.model = result.url = result.command_line = kHostile;
  result.workload.emplace_back(kHostile, kHostile);
  return result;
}

}  // namespace
}  // namespace gauntlet::load

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_sample_load FOLDER\n", stderr);
    return 2;
  }
  using namespace gauntlet::load;
  const auto write = [&](const char* name, const LoadResult& result) {
    std::ofstream file(std::string(argv[1]) + "/" + name);
    file << render_html(result);
    return file.good();
  };
  LoadResult single = described({});
  single.points.push_back(point_at(12));
  return write("load_sweep.html", sample_sweep()) && write("load_run.html", single) &&
                 write("load_hostile.html", hostile())
             ? 0
             : 1;
}
