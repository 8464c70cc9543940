#include "catalog/ch11/stream_ordered_alloc/pair.h"

#include <algorithm>

#include "lab/author/pair.h"

namespace gauntlet::ch11::stream_ordered_alloc {

lab::Pair<Params> pair() {
  return {
      .title = "cudaMalloc in the loop → stream-ordered pool",
      .technique = "stream_ordered_allocation",
      .knobs =
          {{.name = "words", .cpu = 1 << 20, .max = 1 << 26, .help = "of 4 bytes"},
           {.name = "steps", .cpu = 32, .max = 1024, .help = "with working memory of their own"}},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "Memory that goes back to a pool in the order of the stream is taken from it "
                  "again by the next step, and the host goes on; cudaFree waits for the step, "
                  "and cudaMalloc maps the memory anew. The pool keeps what it was once given.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["words"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome(
                  "bytes_from_device", lab::Witness::Moves::falls, 8,
                  "bytes that a run takes from the device: what cudaMalloc was asked for, or what "
                  "the pool's reserve grew by")},
      .bind =
          [](lab::Binder& b) {
            const auto words = b.knob("words");
            return Params{.in = b.input<std::uint32_t>("in", words, lab::Fill::bytes()),
                          .out = b.output<std::uint32_t>("out", words),
                          .words = words,
                          .steps = b.knob("steps")};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<std::uint32_t>("out");
            std::copy_n(p.in, p.words, out.begin());
            for (std::int64_t step = 0; step < p.steps; ++step) {
              for (std::uint32_t& word : out) word = 3 * word + static_cast<std::uint32_t>(step);
              std::ranges::reverse(out);
            }
          },
  };
}

}  // namespace gauntlet::ch11::stream_ordered_alloc
