// BufferSet: one set of a pair's buffers on a backend, with guard zones around each, and the
// reference of its current inputs. Several sets are rotated while measuring.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/host_array.h"
#include "lab/measure/backend.h"
#include "lab/author/binder.h"
#include "lab/author/reference.h"
#include "lab/author/target.h"

namespace gauntlet::lab::inline measure {

class BufferSet final : public Binder {
 public:
  BufferSet(const Target& target, const Knobs& knobs, Backend& backend);
  ~BufferSet() override;
  BufferSet(const BufferSet&) = delete;
  BufferSet& operator=(const BufferSet&) = delete;

  const void* params() const { return params_.get(); }
  std::int64_t bytes() const;

  /// Writes inputs from a seed and computes their reference.
  void fill(std::uint64_t seed);
  /// Overwrites all outputs with a pattern that no correct result holds (NaN for floats).
  void poison_outputs();
  /// Puts back what a run consumes, where the pair says so. Untimed.
  void reset();

  struct Buffer {
    BufferSpec spec;
    HostArray<unsigned char> host;  // inputs as filled
    unsigned char* base = nullptr;  // start of the front guard
    unsigned char* data = nullptr;
    std::size_t bytes = 0;
  };
  const std::vector<Buffer>& buffers() const { return buffers_; }
  const Reference& reference() const { return reference_; }
  Backend& backend() const { return backend_; }
  std::uint64_t seed() const { return seed_; }

  static constexpr std::size_t kGuardBytes = 4096;
  static constexpr unsigned char kGuardByte = 0xA5;
  static constexpr unsigned char kPoisonByte = 0xFF;

 protected:
  void* add(BufferSpec spec) override;

 private:
  const Target& target_;
  Backend& backend_;
  std::vector<Buffer> buffers_;
  std::shared_ptr<const void> params_;
  Reference reference_{0};
  std::uint64_t seed_ = 0;
};

}  // namespace gauntlet::lab::inline measure
