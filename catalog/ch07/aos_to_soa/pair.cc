#include "catalog/ch07/aos_to_soa/pair.h"

#include <cstddef>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch07::aos_to_soa {
namespace {

constexpr std::int64_t field_at(std::size_t offset_bytes) {
  return static_cast<std::int64_t>(offset_bytes / sizeof(float));
}

lab::Cost cost(const lab::Knobs& knobs) {
  const double particles = static_cast<double>(knobs["count"]);
  return {.read_bytes = 16 * particles, .write_bytes = 4 * particles, .flops = 7 * particles};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "array of structs → struct of arrays",
      .technique = "data_layout",
      .knobs = {{.name = "count",
                 .cpu = 3 << 20,
                 .cuda = 12 << 20,
                 .help = "particles of eight fields; the loop uses four"}},
      .cpu =
          lab::BackendFacts{
              .claim = "A loop that uses half of each struct still streams all of it through the "
                       "cache; separate arrays halve the lines that are read. Turning the structs "
                       "into arrays is not in the time: it moves each struct in and out once.",
              .cost = cost,
              .witness = lab::Witness::counter("L1-dcache-load-misses", lab::Witness::Moves::falls,
                                               1.4, "lines that came into the first-level cache")},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "A warp that reads one field of 32 structs touches 32 sectors and uses an "
                  "eighth of each; from an array of that field it needs 4 full sectors. Turning "
                  "the structs into arrays is not in the time: it moves each struct in and out "
                  "once.",
              .cost = cost,
              .witness = lab::Witness::counter(
                  "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
                  lab::Witness::Moves::falls, 4, "sectors per global load request")},
      .metrics = {{.name = "conversion_bytes", .unit = "B moved once, outside of the time"}},
      .bind =
          [](lab::Binder& b) {
            const auto count = b.knob("count");
            const auto* structs =
                b.input<float>("particles", 2 * kFields * count,
                               lab::Fill::both_layouts(0.5f, 2.0f, kFields, count));
            const auto field = [arrays = structs + kFields * count, count](std::size_t offset) {
              return arrays + field_at(offset) * count;
            };
            return Params{.particles = reinterpret_cast<const Particle*>(structs),
                          .fields = {.vx = field(offsetof(Particle, vx)),
                                     .vy = field(offsetof(Particle, vy)),
                                     .vz = field(offsetof(Particle, vz)),
                                     .mass = field(offsetof(Particle, mass))},
                          .energy = b.output<float>("energy", count),
                          .count = count};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto energy = r.values("energy", {.length = 3});
            parallel_for(p.count, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) {
                const double vx = p.particles[i].vx, vy = p.particles[i].vy, vz = p.particles[i].vz;
                energy[static_cast<std::size_t>(i)] =
                    0.5 * p.particles[i].mass * (vx * vx + vy * vy + vz * vz);
              }
            });
          },
  };
}

}  // namespace gauntlet::ch07::aos_to_soa
