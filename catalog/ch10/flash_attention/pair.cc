#include "catalog/ch10/flash_attention/pair.h"

#include "lab/author/attention.h"
#include "lab/author/pair.h"

namespace gauntlet::ch10::flash_attention {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto heads = static_cast<double>(knobs["heads"]);
  const auto queries = static_cast<double>(knobs["queries"]);
  const auto keys = static_cast<double>(knobs["keys"]);
  return {.read_bytes = 4 * heads * (queries + 2 * keys) * kHeadDim,
          .write_bytes = 4 * heads * queries * kHeadDim,
          .flops = heads * queries * keys * (4 * kHeadDim + 2),
          .level = lab::Cost::Level::cache};
}

void reference(const Params& p, lab::Reference& r) {
  lab::expect_attention(r, "out",
                        {.q = p.q,
                         .k = p.k,
                         .v = p.v,
                         .heads = p.heads,
                         .queries = p.queries,
                         .keys = p.keys,
                         .head_dim = kHeadDim,
                         .scale = kScale},
                        32);
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "materialised scores → online softmax tiles",
      .technique = "online_softmax",
      .knobs = {{.name = "heads", .cpu = 1, .cuda = 8, .max = 256, .help = "heads"},
                {.name = "queries",
                 .cpu = 128,
                 .cuda = 1024,
                 .min = 64,
                 .max = 1 << 20,
                 .multiple_of = 64,
                 .help = "queries of each head"},
                {.name = "keys",
                 .cpu = 32768,
                 .cuda = 4096,
                 .min = 64,
                 .max = 1 << 20,
                 .multiple_of = 64,
                 .help = "keys and values of each head; every query sees all of them"}},
      .cpu = lab::BackendFacts{.claim = "The scores of a block of queries grow with the context "
                                        "and are more than the second-level cache holds; a tile "
                                        "of them stays in the first, at the price of scaling the "
                                        "sums once per tile.",
                               .cost = cost,
                               .witness = lab::Witness::counter(
                                   "L1-dcache-load-misses", lab::Witness::Moves::falls, 1.2,
                                   "loads that miss the first-level cache")},
      .cuda =
          lab::BackendFacts{
              .claim = "The scores of 64 queries and a long context are more than shared memory "
                       "holds, so they go to memory and come back three times; a running maximum "
                       "lets each tile of them be used at once, at the price of scaling the sums "
                       "once per tile.",
              .cost = cost,
              .witness = lab::Witness::counter("dram__bytes.sum", lab::Witness::Moves::falls, 4,
                                               "bytes between memory and L2, either way")},
      .bind =
          [](lab::Binder& b) {
            const auto heads = b.knob("heads"), queries = b.knob("queries"), keys = b.knob("keys");
            return Params{
                // Scores of some size, so that the softmax prefers some keys to others.
                .q = b.input<float>("q", heads * queries * kHeadDim, lab::Fill::uniform(-4, 4)),
                .k = b.input<float>("k", heads * kHeadDim * keys, lab::Fill::uniform()),
                .v = b.input<float>("v", heads * keys * kHeadDim, lab::Fill::uniform()),
                .scores = b.scratch<float>("scores", heads * queries * keys),
                .out = b.output<float>("out", heads * queries * kHeadDim),
                .heads = heads,
                .queries = queries,
                .keys = keys};
          },
      .reference = reference,
  };
}

}  // namespace gauntlet::ch10::flash_attention
