// The checkpoint is read into memory of the process's own, which is there when it is wanted.
#include <memory>

#include "catalog/ch05/mmap_weights/pair.h"
#include "core/check.h"
#include "lab/author/counted.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::mmap_weights::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  const int file = p.stored->file().cached();
  return lab::reading_hot(
      p.stored, lab::counted(lab::copied_bytes(), [p, file] {
        const auto bytes = static_cast<std::size_t>(p.rows * p.columns);
        const std::unique_ptr<unsigned char[]> weights(new unsigned char[bytes]);
        check(bool(read_fully(file, {weights.get(), bytes}, p.start[0] * kDirectBytes)),
              "a checkpoint can be read");
        multiply(p, reinterpret_cast<const std::int8_t*>(weights.get()));
      }));
}

}  // namespace gauntlet::ch05::mmap_weights::cpu
