#include "catalog/ch09/no_allocate_loads/pair.h"

#include <span>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch09::no_allocate_loads {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto tokens = static_cast<double>(knobs["tokens"]);
  const auto columns = static_cast<double>(knobs["columns"]);
  return {.read_bytes =
              4 * kChoices * tokens * columns + 8 * kChoices * tokens + 4 * kExperts * columns,
          .write_bytes = 4 * tokens * columns,
          .flops = 3 * kChoices * tokens * columns};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "default loads → L1::no_allocate / L2::256B hints",
      .technique = "cache_hints",
      .knobs = {{.name = "tokens",
                 .cuda = 1 << 15,
                 .min = kExperts,
                 .max = 1 << 22,
                 .multiple_of = kExperts,
                 .help = "tokens, a block each"},
                {.name = "columns",
                 .cuda = 1024,
                 .min = 4,
                 .max = 1 << 16,
                 .multiple_of = 4,
                 .help = "words per token; the scales take 128 bytes for each"}},
      .cuda =
          lab::BackendFacts{
              .claim = "Outputs that are read once push the experts' scales out of L1; loads that "
                       "take no place there leave the scales where they are, and L2 serves fewer "
                       "requests.",
              .cost = cost,
              .witness = lab::Witness::counter("lts__t_sectors_srcunit_tex_op_read.sum",
                                               lab::Witness::Moves::falls, 1.1,
                                               "sectors that the SMs read through L2")},
      .bind =
          [](lab::Binder& b) {
            const auto tokens = b.knob("tokens"), columns = b.knob("columns");
            // Whole numbers: sums of their products are exact in any order.
            return Params{.outputs = b.input<float>("outputs", tokens * kChoices * columns,
                                                    lab::Fill::whole_floats(-512, 512)),
                          .slots = b.input<std::int32_t>("slots", tokens * kChoices,
                                                         lab::Fill::permutation(tokens * kChoices)),
                          .weights = b.input<float>("weights", tokens * kChoices,
                                                    lab::Fill::whole_floats(-32, 32)),
                          .scales = b.input<float>("scales", kExperts * columns,
                                                   lab::Fill::whole_floats(-64, 64)),
                          .out = b.output<float>("out", tokens * columns),
                          .tokens = tokens,
                          .columns = columns};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const std::span<float> out = r.exact<float>("out");  // of zeros
            const std::int64_t share = p.tokens * kChoices / kExperts;
            parallel_for(
                p.tokens,
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t token = begin; token < end; ++token) {
                    float* to = out.data() + token * p.columns;
                    for (int choice = 0; choice < kChoices; ++choice) {
                      const std::int64_t slot = p.slots[token * kChoices + choice];
                      const float weight = p.weights[token * kChoices + choice];
                      const float* y = p.outputs + slot * p.columns;
                      const float* s = p.scales + slot / share * p.columns;
                      for (std::int64_t i = 0; i < p.columns; ++i) to[i] += weight * s[i] * y[i];
                    }
                  }
                },
                8);
          },
  };
}

}  // namespace gauntlet::ch09::no_allocate_loads
