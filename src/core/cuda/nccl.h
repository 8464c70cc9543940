// NCCL through dlopen: ranks with a GPU each. The binary starts without it; two ranks on one device
// are refused, as NCCL itself would refuse them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/expected.h"
#include "core/os/dynamic_library.h"
#include "core/ranks/group.h"

struct CUstream_st;

namespace gauntlet {

/// Where libnccl is looked for: the loader's own search, a toolkit's folders, and beside the
/// executable.
LibrarySearch nccl_search();

/// The ranks of a group, by their current devices. What is enqueued on a stream can be captured.
/// All ranks enqueue the same calls in the same order; NCCL adds in an order of its own, the same
/// for all ranks.
class NcclRanks {
 public:
  /// All ranks of the group call it. An error names the library and the places searched, what NCCL
  /// said, or the ranks that share a device.
  static Expected<std::unique_ptr<NcclRanks>> join(ranks::Group& group);
  static Expected<std::unique_ptr<NcclRanks>> join(ranks::Group& group,
                                                   const LibrarySearch& search);
  ~NcclRanks();
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  int rank() const;
  int size() const;
  std::string version() const;  // "2.28.9"

  /// Every rank's numbers become their sum.
  void all_sum(float* numbers, std::int64_t count, CUstream_st* stream);
  /// Everyone's numbers, in the order of ranks; `all` holds size() times as many as `own`.
  void all_gather(const float* own, std::int64_t count, float* all, CUstream_st* stream);
  /// Rank `root`'s bytes become everyone's.
  void broadcast(void* bytes, std::size_t count, int root, CUstream_st* stream);

  /// Of an error that came up on the way, in NCCL's words; empty: none.
  std::string failure() const;
  /// Lets streams go on without the other ranks; nothing more can be enqueued.
  void abort();

 private:
  NcclRanks();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gauntlet
