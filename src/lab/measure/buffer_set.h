// BufferSet: one set of a target's buffers on a backend, with guard zones around each. Many sets
// are rotated while measuring, so that no run finds what the one before left.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/host_array.h"
#include "lab/author/binder.h"
#include "lab/measure/backend.h"
#include "lab/targets/target.h"

namespace gauntlet::lab::inline measure {

class BufferSet final : public Binder {
 public:
  BufferSet(const Target& target, const Knobs& knobs, Backend& backend);
  ~BufferSet() override;
  BufferSet(const BufferSet&) = delete;
  BufferSet& operator=(const BufferSet&) = delete;

  const void* params() const { return params_.get(); }
  std::int64_t bytes() const;

  /// New inputs from a seed: all of them, or some blocks. After a partial renewal the next must be
  /// of all.
  void renew(std::uint64_t seed, InputVersion::Renewed renewed = InputVersion::Renewed::all);
  /// True where inputs can be renewed in parts.
  bool mixes() const { return mixed_blocks_ > 0; }
  /// Overwrites all outputs with a pattern that no correct result holds (NaN for floats).
  void poison_outputs();
  /// Moves the pages of managed inputs to where the pair says that a run finds them.
  void place_pages();

  struct Buffer {
    BufferSpec spec;
    unsigned char* base = nullptr;  // start of the front guard
    unsigned char* data = nullptr;
    std::size_t bytes = 0;
    std::int64_t first_block = 0;  // of an input that mixes
  };
  const std::vector<Buffer>& buffers() const { return buffers_; }
  InputJob job(std::size_t buffer) const;
  /// The same input as another rank has it; ranks have the same shapes.
  InputJob job(std::size_t buffer, int of_rank) const;
  Backend& backend() const { return backend_; }
  const Target& target() const { return target_; }

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
  InputVersion version_;
  std::int64_t mixed_blocks_ = 0;
};

}  // namespace gauntlet::lab::inline measure
