#include "catalog/ch06/parallel_add/pair.h"

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch06::parallel_add {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto count = static_cast<double>(knobs["count"]);
  return {.read_bytes = 8 * count, .write_bytes = 4 * count, .flops = count};
}

// One thread of a GPU is so slow that the array has to be small: it stays in L2.
lab::Cost cost_in_cache(const lab::Knobs& knobs) {
  lab::Cost in_cache = cost(knobs);
  in_cache.level = lab::Cost::Level::cache;
  return in_cache;
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "one thread → whole grid / all cores",
      .technique = "data_parallelism",
      .knobs = {{.name = "count",
                 .cpu = 12 << 20,
                 .cuda = 1 << 15,
                 .max = std::int64_t{1} << 27,
                 .help = "elements to add"}},
      .cpu =
          lab::BackendFacts{
              .kind = lab::Kind::demonstration,
              .claim = "One core cannot ask for as much memory at a time as all of them together; "
                       "the factor says how many cores it takes to fill the memory, no more.",
              .cost = cost,
              .witness = lab::Witness::outcome("working_threads", lab::Witness::Moves::rises, 1.5,
                                               "threads that share the CPU time")},
      .cuda =
          lab::BackendFacts{
              .kind = lab::Kind::demonstration,
              .claim =
                  "A lone thread waits for each load by itself and leaves 31 lanes of its warp and "
                  "every other SM idle; the factor is a lesson, not a gain anyone should quote.",
              .cost = cost_in_cache,
              .witness = lab::Witness::counter(
                  "smsp__average_thread_inst_executed_per_inst_executed.ratio",
                  lab::Witness::Moves::rises, 8, "active lanes per instruction")},
      .bind =
          [](lab::Binder& b) {
            const auto count = b.knob("count");
            return Params{.a = b.input<float>("a", count, lab::Fill::uniform()),
                          .b = b.input<float>("b", count, lab::Fill::uniform()),
                          .sum = b.output<float>("sum", count),
                          .count = count};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto sum = r.exact<float>("sum");
            parallel_for(p.count, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) sum[i] = p.a[i] + p.b[i];
            });
          },
  };
}

}  // namespace gauntlet::ch06::parallel_add
