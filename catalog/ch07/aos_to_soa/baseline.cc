// Kinetic energy out of an array of structs: every cache line also carries positions and charges.
#include "catalog/ch07/aos_to_soa/pair.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::aos_to_soa::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return {[p] {
            for (std::int64_t i = 0; i < p.count; ++i) {
              const float vx = p.particles[i].vx;
              const float vy = p.particles[i].vy;
              const float vz = p.particles[i].vz;
              const float mass = p.particles[i].mass;
              p.energy[i] = 0.5f * mass * (vx * vx + vy * vy + vz * vz);
            }
          },
          {{"conversion_bytes", 0}}};
}

}  // namespace gauntlet::ch07::aos_to_soa::cpu
