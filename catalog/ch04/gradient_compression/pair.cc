#include "catalog/ch04/gradient_compression/pair.h"

#include <cmath>

#include "lab/author/pair.h"

namespace gauntlet::ch04::gradient_compression {

lab::Pair<Params> pair() {
  return {
      .title = "fp32 → bf16 payloads, error reported",
      .technique = "compressed_payloads",
      .needs = {"2 ranks"},
      .knobs = {{.name = "kilo", .cpu = 256, .max = 1 << 16, .help = "1024 gradients per rank"},
                {.name = "link_us", .cpu = 50, .min = 0, .help = "declared latency of the link"},
                {.name = "link_mb_s", .cpu = 400, .help = "declared rate of a rank's port"}},
      .ranks =
          lab::BackendFacts{
              .claim = "Over a link of a declared rate, half of the bytes take half of the time; "
                       "rounding is in the time, and the sums have the error of bf16.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * 1024 * static_cast<double>(k["kilo"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("sent_kib", lab::Witness::Moves::falls, 1.9,
                                               "what a rank sends, counted by its links")},
      .metrics = {{.name = "error", .unit = "relative", .from = lab::Metric::From::error}},
      .bind =
          [](lab::Binder& b) {
            // A part for each rank, whatever their number.
            const auto ranks = b.num_ranks();
            const std::int64_t count = b.knob("kilo") * 1024 / ranks * ranks;
            return Params{
                .gradients = b.input<float>("gradients", count, lab::Fill::uniform()),
                .sums = b.output<float>("sums", count),
                .count = count,
                .fabric = {.between = {.latency_s = 1e-6 * static_cast<double>(b.knob("link_us")),
                                       .bytes_per_s =
                                           1e6 * static_cast<double>(b.knob("link_mb_s"))}},
                .num_ranks = ranks};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            // The fp32 side is far inside of this bound; the metric shows both errors.
            const auto sums = r.values(
                "sums", {.operands = DType::bf16, .result = DType::bf16, .length = p.num_ranks});
            const auto norms = r.norms("sums");
            for (int rank = 0; rank < p.num_ranks; ++rank) {
              const auto* gradients = r.peer_input<float>("gradients", rank);
              for (std::size_t i = 0; i < sums.size(); ++i) {
                const double term = gradients[i];
                sums[i] += term;
                norms[i] += term * term;
              }
            }
            for (double& norm : norms) norm = std::sqrt(norm);
          },
  };
}

}  // namespace gauntlet::ch04::gradient_compression
