#include "catalog/ch10/cooperative_persistent/pair.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch10::cooperative_persistent {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto elements = static_cast<double>(knobs["rows"] * knobs["columns"]);
  return {.read_bytes = 4 * elements,
          .write_bytes = 4 * elements,
          .flops = 4 * elements * static_cast<double>(knobs["steps"]),
          .level = lab::Cost::Level::cache};
}

/// The sides' sums in their order, so that the bits are the same.
void relax(const Params& p, const float* from, float* to) {
  const std::vector<float> zeros(static_cast<std::size_t>(p.columns));
  parallel_for(
      p.rows,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const float* here = from + row * p.columns;
          const float* up = row > 0 ? here - p.columns : zeros.data();
          const float* down = row + 1 < p.rows ? here + p.columns : zeros.data();
          float* result = to + row * p.columns;
          const std::int64_t last = p.columns - 1;
          for (std::int64_t i = 1; i < last; ++i) {
            result[i] = ((up[i] + down[i]) + (here[i - 1] + here[i + 1])) * 0.25f;
          }
          result[0] = ((up[0] + down[0]) + (0.0f + (last > 0 ? here[1] : 0.0f))) * 0.25f;
          if (last > 0) {
            result[last] = ((up[last] + down[last]) + (here[last - 1] + 0.0f)) * 0.25f;
          }
        }
      },
      256);
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "kernel per step → one cooperative kernel, grid sync",
      .technique = "cooperative_grid",
      .knobs = {{.name = "rows", .cuda = 512, .max = 8192, .help = "rows of the matrix"},
                {.name = "columns", .cuda = 512, .max = 8192, .help = "columns of the matrix"},
                {.name = "steps",
                 .cuda = 64,
                 .min = 2,
                 .max = 1024,
                 .multiple_of = 2,
                 .help = "steps, each of which needs all of the one before"}},
      .cuda = lab::BackendFacts{.claim = "A step of a small matrix takes about as long as a kernel "
                                         "takes to start and drain; blocks that stay and meet "
                                         "between steps start once.",
                                .cost = cost,
                                .witness = lab::Witness::counter("sm__ctas_launched.sum",
                                                                 lab::Witness::Moves::falls, 8,
                                                                 "blocks launched")},
      .bind =
          [](lab::Binder& b) {
            const auto rows = b.knob("rows"), columns = b.knob("columns");
            return Params{.in = b.input<float>("in", rows * columns, lab::Fill::uniform()),
                          .other = b.scratch<float>("other", rows * columns),
                          .out = b.output<float>("out", rows * columns),
                          .rows = rows,
                          .columns = columns,
                          .steps = b.knob("steps")};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const std::span<float> out = r.exact<float>("out");
            std::vector<float> from(p.in, p.in + p.rows * p.columns), to(from.size());
            for (std::int64_t step = 0; step < p.steps; ++step) {
              relax(p, from.data(), to.data());
              std::swap(from, to);
            }
            std::ranges::copy(from, out.begin());
          },
  };
}

}  // namespace gauntlet::ch10::cooperative_persistent
