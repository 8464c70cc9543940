// The declaration that all planted lies share.
#pragma once
#include "lab/author/pair.h"
#include "tests/lies/params.h"

namespace gauntlet::lies {

inline lab::Pair<Params> scale_pair(lab::Witness witness = lab::Witness::none("a planted lie")) {
  const lab::BackendFacts facts{.claim = "The optimized side doubles every element faster.",
                                .cost =
                                    [](const lab::Knobs& knobs) {
                                      const double bytes =
                                          4.0 * static_cast<double>(knobs["count"]);
                                      return lab::Cost{.read_bytes = bytes, .write_bytes = bytes};
                                    },
                                .witness = std::move(witness)};
  return {
      .title = "double every element → pretend to",
      .technique = "lying",
      .knobs = {{.name = "count", .cpu = 1 << 15, .cuda = 1 << 22, .min = 64, .help = "elements"}},
      .cpu = facts,
      .cuda = facts,
      .bind =
          [](lab::Binder& b) {
            const auto count = b.knob("count");
            return Params{.in = b.input<float>("in", count, lab::Fill::uniform()),
                          .out = b.output<float>("out", count),
                          .count = count};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<float>("out");
            for (std::size_t i = 0; i < out.size(); ++i) out[i] = 2.0f * p.in[i];
          },
  };
}

}  // namespace gauntlet::lies
