#include "catalog/ch03/thread_pinning/pair.h"

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch03::thread_pinning {

lab::Pair<Params> pair() {
  return {
      .title = "migrating threads → pinned to cores",
      .technique = "thread_pinning",
      .knobs = {{.name = "workers", .cpu = 2, .max = 256, .help = "threads that step together"},
                {.name = "words",
                 .cpu = 1 << 16,
                 .max = 1 << 24,
                 .help = "of 4 bytes per worker; they stay in its second-level cache"},
                {.name = "steps", .cpu = 64, .max = 4096, .help = "after each, all wait for all"}},
      .cpu =
          lab::BackendFacts{
              .claim = "A worker that wakes up where its part still is in the cache, and where no "
                       "other runs, starts at once; the scheduler may wake it elsewhere. It gains "
                       "only where the scheduler does move threads.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["workers"] * k["words"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("migrations", lab::Witness::Moves::falls, 2,
                                               "threads that the kernel moved to another CPU, by "
                                               "its count per thread")},
      .bind =
          [](lab::Binder& b) {
            const auto workers = b.knob("workers"), words = b.knob("words"),
                       steps = b.knob("steps");
            return Params{.in = b.input<std::uint32_t>("in", workers * words, lab::Fill::bytes()),
                          .factor = b.input<std::uint32_t>("factor", steps, lab::Fill::bytes()),
                          .out = b.output<std::uint32_t>("out", workers * words),
                          .workers = workers,
                          .words = words,
                          .steps = steps};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            // Steps are affine, and so is what they come to together.
            std::uint32_t factor = 1, offset = 0;
            for (std::int64_t number = 0; number < p.steps; ++number) {
              factor *= factor_of(p, number);
              offset = offset * factor_of(p, number) + 1;
            }
            const auto out = r.exact<std::uint32_t>("out");
            for (std::size_t i = 0; i < out.size(); ++i) out[i] = p.in[i] * factor + offset;
          },
  };
}

}  // namespace gauntlet::ch03::thread_pinning
