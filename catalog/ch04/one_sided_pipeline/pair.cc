#include "catalog/ch04/one_sided_pipeline/pair.h"

#include <vector>

#include "lab/author/pair.h"

namespace gauntlet::ch04::one_sided_pipeline {

lab::Pair<Params> pair() {
  return {
      .title = "send/recv between stages → one-sided puts with flags",
      .technique = "one_sided_writes",
      .needs = {"2 ranks"},
      .knobs = {{.name = "batches", .cpu = 64, .max = 1 << 12, .help = "through the pipeline"},
                {.name = "size", .cpu = 1 << 12, .max = 1 << 20, .help = "words of a batch"}},
      .ranks =
          lab::BackendFacts{
              .claim = "A batch is written where the next stage reads it: one copy and a flag, "
                       "where a message is copied on its way in and out and matched. The window "
                       "is opened outside of the time.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["batches"] * k["size"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("messages", lab::Witness::Moves::falls, 8,
                                               "messages of a rank, counted under its group")},
      .metrics = {{.name = lab::kSetupUs,
                   .unit = "us, before the clock starts",
                   .from = lab::Metric::From::outcome}},
      .bind =
          [](lab::Binder& b) {
            const auto batches = b.knob("batches"), size = b.knob("size");
            return Params{
                .inputs = b.input<std::uint32_t>("inputs", batches * size, lab::Fill::bytes()),
                .factors = b.input<std::uint32_t>("factors", size, lab::Fill::bytes()),
                .outputs = b.output<std::uint32_t>("outputs", batches * size),
                .batches = batches,
                .size = size,
                .rank = b.rank(),
                .num_ranks = b.num_ranks()};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto outputs = r.exact<std::uint32_t>("outputs");
            const auto* inputs = r.peer_input<std::uint32_t>("inputs", 0);
            std::vector<const std::uint32_t*> factors;
            for (int stage = 0; stage <= p.rank; ++stage) {
              factors.push_back(r.peer_input<std::uint32_t>("factors", stage));
            }
            for (std::size_t i = 0; i < outputs.size(); ++i) {
              outputs[i] = inputs[i];
              const std::size_t column = i % static_cast<std::size_t>(p.size);
              for (const auto* factor : factors) outputs[i] = outputs[i] * factor[column] + 1;
            }
          },
  };
}

}  // namespace gauntlet::ch04::one_sided_pipeline
