#include "catalog/ch02/peer_copy/pair.h"

#include <algorithm>

#include "lab/author/pair.h"

namespace gauntlet::ch02::peer_copy {
namespace {

double bytes_of(const lab::Knobs& knobs) { return 4 * static_cast<double>(knobs["words"]); }

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "through the host → GPU to GPU",
      .technique = "peer_access",
      .knobs = {{.name = "words",
                 .cpu = 1 << 24,
                 .max = 1 << 28,
                 .help = "of 4 bytes, sent to the second GPU and fetched back"}},
      .cuda =
          lab::BackendFacts{
              .claim = "With peer access a copy goes from GPU to GPU over their own link, or over "
                       "the switch between them; without, it crosses the host's memory, in pieces "
                       "that come in while others go out.",
              // What both GPUs' memory has to do; the link between them has no measured ceiling.
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                return {.read_bytes = bytes_of(k),
                        .write_bytes = bytes_of(k),
                        .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("host_bytes", lab::Witness::Moves::falls, 2,
                                               "bytes of copies with an end in host memory, by "
                                               "cudaPointerGetAttributes()"),
              .needs = {"2 GPUs"}},
      .metrics = {{.name = "rate between GPUs",
                   .unit = "B/s",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount = [](const lab::Knobs& k) { return 2 * bytes_of(k); }}},
      .bind =
          [](lab::Binder& b) {
            const auto words = b.knob("words");
            return Params{.in = b.input<std::uint32_t>("in", words, lab::Fill::bytes()),
                          .out = b.output<std::uint32_t>("out", words),
                          .words = words};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            std::copy_n(p.in, p.words, r.exact<std::uint32_t>("out").begin());
          },
  };
}

}  // namespace gauntlet::ch02::peer_copy
