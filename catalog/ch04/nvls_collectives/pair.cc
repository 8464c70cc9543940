#include "catalog/ch04/nvls_collectives/pair.h"

#include <cmath>
#include <numeric>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch04::nvls_collectives {

lab::Pair<Params> pair() {
  return {
      .title = "SM-driven → NVLink SHARP",
      .technique = "sums_in_the_switch",
      .knobs = {{.name = "words",
                 .cpu = 1 << 22,
                 .min = 16 * kPartWords,
                 .max = 1 << 28,
                 .multiple_of = 16 * kPartWords,
                 .help = "of an operand, of which each GPU has one"},
                {.name = "gpus",
                 .cpu = 8,
                 .min = 2,
                 .max = 16,
                 .help = "whose operands are added up: 2, 4, 8 or 16"}},
      .cuda =
          lab::BackendFacts{
              .claim = "Where the switch adds, a GPU sends its operand once and gets the sum once; "
                       "where SMs do, it exchanges both with each other GPU, and its SMs wait "
                       "for all of them.",
              // Of the first GPU, which is where the clock and the ceilings are.
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["words"] * k["gpus"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::counter("nvltx__bytes.sum", lab::Witness::Moves::falls, 1.2,
                                               "bytes that the first GPU sends over its links"),
              .needs = {"nvls", "8 GPUs"}},
      .bind =
          [](lab::Binder& b) {
            const auto words = b.knob("words"), gpus = b.knob("gpus");
            std::vector<int> devices(static_cast<std::size_t>(gpus));
            std::iota(devices.begin(), devices.end(), 0);
            // Whole numbers, and sums of them below 2^24: exact in any order.
            return Params{
                .in = b.input<float>("in", gpus * words, lab::Fill::whole_floats(-10, 11)),
                .out = b.output<float>("out", gpus * words),
                .words = words,
                .devices = std::move(devices)};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<float>("out");
            const auto gpus = std::ssize(p.devices);
            // After the first sum all operands are alike, and each further one multiplies them.
            const auto times = static_cast<float>(std::pow(gpus, kSums - 1));
            parallel_for(p.words, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) {
                float sum = 0;
                for (std::int64_t gpu = 0; gpu < gpus; ++gpu) sum += p.in[gpu * p.words + i];
                for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
                  out[static_cast<std::size_t>(gpu * p.words + i)] = times * sum;
                }
              }
            });
          },
  };
}

}  // namespace gauntlet::ch04::nvls_collectives
