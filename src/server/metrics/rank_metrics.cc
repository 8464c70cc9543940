#include "server/metrics/metrics.h"

namespace gauntlet::server::inline metrics {

void add_rank_metrics(PrometheusText& text, const std::vector<engine::RankCounters>& ranks) {
  if (ranks.empty()) return;
  const auto by_rank = [&](auto value) {
    std::vector<Sample> samples;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      samples.push_back({.labels = {{"rank", std::to_string(rank)}},
                         .value = static_cast<double>(value(ranks[rank]))});
    }
    return samples;
  };
  using Counters = engine::RankCounters;
  text.counters("gauntlet:rank_steps_total", "Steps that a rank has computed its part of.",
                by_rank([](const Counters& one) { return one.steps; }));
  text.counters("gauntlet:rank_sent_bytes_total", "Bytes that a rank has sent to others.",
                by_rank([](const Counters& one) { return one.sent_bytes; }));
  text.counters("gauntlet:rank_wait_seconds_total",
                "Time that a rank has waited for others in the middle of steps.",
                by_rank([](const Counters& one) { return one.waited_s; }));
  text.gauges("gauntlet:rank_weight_bytes", "Memory of a rank's part of the weights.",
              by_rank([](const Counters& one) { return one.weight_bytes; }));
  text.gauges("gauntlet:rank_kv_bytes", "Memory of a rank's part of the KV pages, used or not.",
              by_rank([](const Counters& one) { return one.kv_bytes; }));
}

}  // namespace gauntlet::server::inline metrics
