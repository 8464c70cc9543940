// Memory of each rank of one GPU that the others read, and where their streams meet: by CUDA IPC
// between processes, by plain pointers between threads of one.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/cuda/memory.h"
#include "core/expected.h"
#include "core/ranks/group.h"
#include "engine/steps/cuda_rank.h"

namespace gauntlet::engine::cuda::inline gpu_ranks {

class PeerWindow {
 public:
  /// All ranks of the group call it, with as many bytes and slots, on the same GPU of one host;
  /// otherwise the error says which rank is elsewhere. All must have ended their steps before the
  /// first lets go of its window.
  static Expected<std::unique_ptr<PeerWindow>> open(ranks::Group& group, std::int64_t bytes,
                                                    int slots,
                                                    RankMeeting meeting = RankMeeting::on_streams);
  ~PeerWindow();
  PeerWindow(const PeerWindow&) = delete;
  PeerWindow& operator=(const PeerWindow&) = delete;

  int rank() const { return rank_; }
  /// Whether any other rank is a thread of this process.
  bool shares_process() const { return shares_process_; }
  /// Held by a thread that launches, of those that share a process; meet() lets go of it where
  /// hosts meet.
  static std::mutex& launching();
  int size() const { return static_cast<int>(bases_.size()); }
  /// A rank's memory, as this one sees it.
  std::uint8_t* memory_of(int rank) const { return bases_[static_cast<std::size_t>(rank)]; }

  /// On the stream: what follows sees what each of `ranks`, this one among them, had given its own
  /// stream before it met them there. They meet in as many slots as were opened, and in one slot
  /// again only after they met in another: so a graph can be replayed, whose flags are constants.
  /// Where hosts meet, all ranks of the group do, and this waits for them.
  void meet(std::span<const int> ranks, int slot, cudaStream_t stream) const;

  /// Lets this rank's stream go on without the others until it is done, or not within so many
  /// seconds. Nothing that it computes after that is worth anything, nor are later meetings.
  bool release(const std::function<bool()>& is_done, double seconds) const;
  /// Ranks whose flag is missing in a slot where others have set theirs, or all others: of a
  /// stream that stands still.
  std::vector<int> missing() const;

 private:
  explicit PeerWindow(std::int64_t bytes, int slots, int rank, int size);
  std::uint32_t* flag(int at_rank, int slot, int of_rank) const {
    return reinterpret_cast<std::uint32_t*>(memory_of(at_rank) + flags_at_) +
           static_cast<std::ptrdiff_t>(slot) * size() + of_rank;
  }

  std::int64_t flags_at_ = 0;
  bool shares_process_ = false;
  int slots_ = 0;
  ranks::Group* hosts_ = nullptr;  // null: streams meet
  int rank_ = 0;
  DeviceMemory own_;
  std::vector<std::uint8_t*> bases_;
  std::vector<void*> opened_;  // by IPC
  CudaStream side_;            // for what must pass while the ranks' streams wait
};

}  // namespace gauntlet::engine::cuda::inline gpu_ranks
