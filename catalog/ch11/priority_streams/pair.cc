#include "catalog/ch11/priority_streams/pair.h"

#include "core/affine_rounds.h"
#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch11::priority_streams {
namespace {

AffineRounds rounds_of(const Params& p, std::int64_t kernels, int rounds) {
  AffineRounds all;
  for (std::int64_t kernel = 0; kernel < kernels; ++kernel) {
    for (int round = 0; round < rounds; ++round) all.add(p.factor[round]);
  }
  return all;
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "equal streams → the latency-critical stream first",
      .technique = "stream_priorities",
      .goal = lab::Goal::tail_latency,
      .goal_metric = "p99 latency",
      .knobs = {{.name = "bulk_words", .cpu = 1 << 22, .max = 1 << 28, .help = "of a bulk kernel"},
                {.name = "bulk_kernels", .cpu = 8, .max = 1024, .help = "one after the other"},
                {.name = "requests", .cpu = 8, .max = 1024, .help = "one after the other, too"},
                {.name = "request_words", .cpu = 4096, .max = 1 << 20, .help = "of a request"}},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "Blocks of a kernel on a stream of higher priority are placed as soon as any "
                  "block ends; on a stream like the others they wait until a bulk kernel that "
                  "came before has placed all of its own. The bulk work takes as long.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes =
                    4 * static_cast<double>(k["bulk_words"] + k["requests"] * k["request_words"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::fact("levels_above_bulk", lab::Witness::Moves::rises, 1,
                                            "by how much the requests' stream goes before that of "
                                            "the bulk work, by cudaStreamGetPriority()")},
      .metrics = {{.name = "p99 latency",
                   .unit = "us",
                   .from = lab::Metric::From::percentile,
                   .percent = 99,
                   .distribution = "latency_us"},
                  {.name = "p50 latency",
                   .unit = "us",
                   .from = lab::Metric::From::percentile,
                   .percent = 50,
                   .distribution = "latency_us"}},
      .bind =
          [](lab::Binder& b) {
            const auto bulk_words = b.knob("bulk_words"), requests = b.knob("requests"),
                       request_words = b.knob("request_words");
            return Params{
                .bulk_in = b.input<std::uint32_t>("bulk_in", bulk_words, lab::Fill::bytes()),
                .request_in = b.input<std::uint32_t>("request_in", requests * request_words,
                                                     lab::Fill::bytes()),
                .factor = b.input<std::uint32_t>("factor", kBulkRounds, lab::Fill::bytes()),
                .bulk_out = b.output<std::uint32_t>("bulk_out", bulk_words),
                .answer = b.output<std::uint32_t>("answer", requests * request_words),
                .bulk_words = bulk_words,
                .bulk_kernels = b.knob("bulk_kernels"),
                .requests = requests,
                .request_words = request_words};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto bulk = r.exact<std::uint32_t>("bulk_out");
            const auto answer = r.exact<std::uint32_t>("answer");
            const AffineRounds of_bulk = rounds_of(p, p.bulk_kernels, kBulkRounds);
            const AffineRounds of_request = rounds_of(p, 1, kRequestRounds);
            parallel_for(p.bulk_words, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) {
                bulk[static_cast<std::size_t>(i)] = of_bulk(p.bulk_in[i]);
              }
            });
            for (std::size_t i = 0; i < answer.size(); ++i) answer[i] = of_request(p.request_in[i]);
          },
  };
}

}  // namespace gauntlet::ch11::priority_streams
