#include "catalog/ch04/gradient_bucketing/pair.h"

#include "lab/author/pair.h"

namespace gauntlet::ch04::gradient_bucketing {

lab::Pair<Params> pair() {
  return {
      .title = "one collective per tensor → buckets",
      .technique = "bucketed_messages",
      .needs = {"2 ranks"},
      .knobs = {{.name = "tensors", .cpu = 96, .max = 1 << 16, .help = "gradients of a step"},
                {.name = "length", .cpu = 1024, .max = 1 << 20, .help = "values of a gradient"},
                {.name = "in_bucket", .cpu = 16, .max = 1 << 16, .help = "gradients of a bucket"}},
      .ranks =
          lab::BackendFacts{
              .claim = "A collective has a price whatever it carries, so that small gradients are "
                       "summed for the price of a few; packing and unpacking are in the time.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["tensors"] * k["length"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("messages", lab::Witness::Moves::falls, 8,
                                               "messages of a rank, counted under its group")},
      .bind =
          [](lab::Binder& b) {
            const auto tensors = b.knob("tensors"), length = b.knob("length");
            return Params{.gradients = b.input<float>("gradients", tensors * length,
                                                      lab::Fill::whole_floats(-1000, 1000)),
                          .sums = b.output<float>("sums", tensors * length),
                          .tensors = tensors,
                          .length = length,
                          .in_bucket = b.knob("in_bucket"),
                          .num_ranks = b.num_ranks()};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto sums = r.exact<float>("sums");
            for (int rank = 0; rank < p.num_ranks; ++rank) {
              const auto* gradients = r.peer_input<float>("gradients", rank);
              for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += gradients[i];
            }
          },
  };
}

}  // namespace gauntlet::ch04::gradient_bucketing
