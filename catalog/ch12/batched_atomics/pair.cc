#include "catalog/ch12/batched_atomics/pair.h"

#include <algorithm>

#include "lab/author/pair.h"

namespace gauntlet::ch12::batched_atomics {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  return {.read_bytes = kExperts * static_cast<double>(knobs["tokens"]),
          .write_bytes = 4.0 * kExperts,
          .level = lab::Cost::Level::cache};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "atomic addition per token → per thread or block, and expert",
      .technique = "batched_atomics",
      .knobs = {{.name = "tokens",
                 .cpu = 1 << 17,
                 .cuda = 1 << 23,
                 .max = std::int64_t{1} << 31,
                 .help = "each with the logits of 16 experts"}},
      .cpu =
          lab::BackendFacts{
              .claim = "An atomic addition takes its cache line away from the other threads, token "
                       "by token; counts that each thread keeps by itself leave one addition per "
                       "thread and expert.",
              .cost = cost,
              .witness = lab::Witness::outcome("atomic_additions", lab::Witness::Moves::falls, 8,
                                               "atomic additions to shared counters, which count "
                                               "them")},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "Additions to the same few words queue up in the second-level cache, one per "
                  "token; counted in shared memory they queue up per block, and one addition "
                  "per block and expert is left.",
              .cost = cost,
              .witness = lab::Witness::counter("smsp__inst_executed_op_global_red.sum",
                                               lab::Witness::Moves::falls, 8,
                                               "instructions that add to words in device memory")},
      .bind =
          [](lab::Binder& b) {
            const auto tokens = b.knob("tokens");
            return Params{
                .logits = b.input<std::int8_t>("logits", tokens * kExperts, lab::Fill::bytes()),
                .count = b.output<std::uint32_t>("count", kExperts),
                .tokens = tokens};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto count = r.exact<std::uint32_t>("count");
            for (std::int64_t token = 0; token < p.tokens; ++token) {
              const std::int8_t* logits = p.logits + token * kExperts;
              ++count[static_cast<std::size_t>(std::max_element(logits, logits + kExperts) -
                                               logits)];
            }
          },
  };
}

}  // namespace gauntlet::ch12::batched_atomics
