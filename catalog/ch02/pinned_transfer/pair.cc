#include "catalog/ch02/pinned_transfer/pair.h"

#include <algorithm>

#include "lab/author/pair.h"

namespace gauntlet::ch02::pinned_transfer {
namespace {

double bytes_of(const lab::Knobs& knobs) { return 4 * static_cast<double>(knobs["words"]); }

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "pageable → pinned asynchronous copies",
      .technique = "pinned_memory",
      .knobs = {{.name = "words",
                 .cpu = 1 << 24,
                 .max = 1 << 28,
                 .help = "of 4 bytes, offloaded to the host and brought back"}},
      .cuda =
          lab::BackendFacts{
              .claim = "The copy engine reads and writes page-locked memory at the link's rate; "
                       "pageable memory goes through the driver's own buffers, copied by a thread.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                return {.read_bytes = bytes_of(k),
                        .write_bytes = bytes_of(k),
                        .level = lab::Cost::Level::host_link};
              },
              .witness = lab::Witness::fact("page_locked", lab::Witness::Moves::rises, 2,
                                            "whether CUDA knows the host's buffer, by "
                                            "cudaPointerGetAttributes()")},
      .metrics = {{.name = "link rate",
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

}  // namespace gauntlet::ch02::pinned_transfer
