// The same field without a branch: pairs out of reach are moved to the cutoff, where the field is
// exactly zero.
#include "catalog/ch08/predication/pair.h"
#include "core/opaque.h"
#include "lab/author/side.h"

namespace gauntlet::ch08::predication::cpu {

lab::Side optimized(const Params& p, const lab::Cpu&) {
  return [p] {
    const float scale = 1 / (p.cutoff2 * p.cutoff2 * p.cutoff2);
    for (std::int64_t i = 0; i < p.num_targets; ++i) {
      const float x = p.targets[i];
      const float y = p.targets[p.num_targets + i];
      const float z = p.targets[2 * p.num_targets + i];
      float fx = 0, fy = 0, fz = 0;
      for (std::int64_t j = 0; j < p.num_sources; ++j) {
        const float* source = p.sources + 4 * j;
        const float dx = source[0] - x, dy = source[1] - y, dz = source[2] - z;
        const float weight = source[3];
        const float r2 = opaque(dx * dx + dy * dy + dz * dz);
        const float s = r2 < p.cutoff2 ? r2 : p.cutoff2;
        const float rest = p.cutoff2 - s;
        const float w = rest * rest * (p.cutoff2 + 2 * s) * (weight / (s + kSoftening2));
        fx += w * dx;
        fy += w * dy;
        fz += w * dz;
      }
      p.out[3 * i] = fx * scale;
      p.out[3 * i + 1] = fy * scale;
      p.out[3 * i + 2] = fz * scale;
    }
  };
}

}  // namespace gauntlet::ch08::predication::cpu
