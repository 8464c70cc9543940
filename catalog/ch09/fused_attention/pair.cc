#include "catalog/ch09/fused_attention/pair.h"

#include "lab/author/attention.h"
#include "lab/author/pair.h"

namespace gauntlet::ch09::fused_attention {
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
                        64);
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "three kernels → one",
      .technique = "kernel_fusion",
      .knobs = {{.name = "heads", .cpu = 4, .cuda = 32, .max = 256, .help = "heads"},
                {.name = "queries",
                 .cpu = 1024,
                 .min = 64,
                 .max = 1 << 20,
                 .multiple_of = 64,
                 .help = "queries of each head"},
                {.name = "keys",
                 .cpu = 1024,
                 .min = 128,
                 .max = kMaxKeys,
                 .multiple_of = 128,
                 .help = "keys and values of each head; every query sees all of them"}},
      .cpu = lab::BackendFacts{.claim = "Scores of all queries and keys are more than a core's own "
                                        "caches hold and pass them several times; those of 32 "
                                        "queries stay there.",
                               .cost = cost,
                               .witness = lab::Witness::counter(
                                   "L1-dcache-load-misses", lab::Witness::Moves::falls, 1.2,
                                   "loads that miss the first-level cache")},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "Three kernels write the scores, read and write them for the softmax and read "
                  "them again; a block that keeps those of 32 queries in shared memory moves "
                  "queries, keys, values and results alone, though it reads keys and values "
                  "twice as often through L2.",
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

}  // namespace gauntlet::ch09::fused_attention
