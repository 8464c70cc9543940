#include "catalog/ch01/batched_gemm/pair.h"

#include "lab/author/pair.h"
#include "lab/author/product.h"

namespace gauntlet::ch01::batched_gemm {
namespace {

lab::Cost cost(const lab::Knobs& knobs, lab::Cost::Level level) {
  const auto batch = static_cast<double>(knobs["batch"]);
  const auto size = static_cast<double>(knobs["size"]);
  return {.read_bytes = 2 * 4 * batch * size * size,
          .write_bytes = 4 * batch * size * size,
          .flops = 2 * batch * size * size * size,
          .level = level};
}

void reference(const Params& p, lab::Reference& r) {
  lab::expect_product(r, "c",
                      {.a = p.a, .b = p.b, .m = p.size, .n = p.size, .k = p.size, .batch = p.batch},
                      {}, 64);
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "many small products one by one → one strided-batched call",
      .technique = "batched_calls",
      .knobs = {{.name = "batch", .cpu = 1024, .max = 1 << 20, .help = "independent products"},
                {.name = "size",
                 .cpu = 32,
                 .cuda = 128,
                 .max = 4096,
                 .help = "rows and columns of each matrix"}},
      .cpu =
          lab::BackendFacts{
              .claim =
                  "Forking the pool once for the whole batch pays for one fork and join instead "
                  "of one per product.",
              .cost = [](const lab::Knobs& k) { return cost(k, lab::Cost::Level::cache); },
              .witness = lab::Witness::outcome("forks", lab::Witness::Moves::falls, 8,
                                               "forks of the thread pool per batch")},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "One small product occupies a few SMs for a few microseconds; one call for the "
                  "batch gives every SM work at once, and is launched once.",
              .cost = [](const lab::Knobs& k) { return cost(k, lab::Cost::Level::dram); },
              .witness = lab::Witness::counter(
                  "sm__cycles_active.avg.pct_of_peak_sustained_elapsed", lab::Witness::Moves::rises,
                  3, "share of the time that an SM has work"),
              .needs = {"cublas"}},
      .bind =
          [](lab::Binder& b) {
            const auto batch = b.knob("batch"), size = b.knob("size");
            const auto count = batch * size * size;
            return Params{.a = b.input<float>("a", count, lab::Fill::uniform()),
                          .b = b.input<float>("b", count, lab::Fill::uniform()),
                          .c = b.output<float>("c", count),
                          .batch = batch,
                          .size = size};
          },
      .reference = reference,
  };
}

}  // namespace gauntlet::ch01::batched_gemm
