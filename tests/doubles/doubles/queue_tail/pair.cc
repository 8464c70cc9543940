#include "tests/doubles/doubles/queue_tail/pair.h"

#include "lab/author/pair.h"

namespace gauntlet::doubles::queue_tail {

lab::Pair<Params> pair() {
  return {
      .title = "a scan of the table within every 20th request → all scans after the requests",
      .technique = "deferred_work",
      .goal = lab::Goal::tail_latency,
      .goal_metric = "request_p99_us",
      .knobs = {{.name = "count", .cpu = 400, .multiple_of = kScanEvery, .help = "requests"}},
      .cpu = lab::BackendFacts{.claim = "The same work takes as long, but no request waits for it.",
                               .cost =
                                   [](const lab::Knobs& knobs) {
                                     const auto count = static_cast<double>(knobs["count"]);
                                     return lab::Cost{.read_bytes = 4 * count * kRequestValues,
                                                      .write_bytes = 4 * count,
                                                      .level = lab::Cost::Level::cache};
                                   },
                               .witness = lab::Witness::fact("scans_in_requests",
                                                             lab::Witness::Moves::falls, 2,
                                                             "scans that a request waits for")},
      .metrics = {{.name = "request_p99_us",
                   .unit = "µs",
                   .from = lab::Metric::From::percentile,
                   .percent = 99,
                   .distribution = "request_us"}},
      .bind =
          [](lab::Binder& b) {
            const auto count = b.knob("count");
            const auto small = lab::Fill::integers(0, 1000);
            return Params{
                .requests = b.input<std::int32_t>("requests", count * kRequestValues, small),
                .table = b.input<std::int32_t>("table", kTableValues, small),
                .answers = b.output<std::int32_t>("answers", count),
                .scans = b.output<std::int32_t>("scans", count / kScanEvery),
                .count = count};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto answers = r.exact<std::int32_t>("answers");
            for (std::int64_t i = 0; i < p.count; ++i) {
              answers[static_cast<std::size_t>(i)] =
                  sum_of(p.requests + i * kRequestValues, kRequestValues);
            }
            const std::int32_t table = sum_of(p.table, kTableValues);
            for (std::int32_t& scan : r.exact<std::int32_t>("scans")) scan = table;
          },
  };
}

}  // namespace gauntlet::doubles::queue_tail
