// Pieces go into page-locked memory of the host by one GPU's stream, and out of it by the other's.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>

#include "catalog/ch02/peer_copy/pair.h"
#include "catalog/ch02/peer_copy/peer.h"
#include "core/cuda/stream_mark.h"
#include "lab/author/counted.h"

namespace gauntlet::ch02::peer_copy::cuda {
namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;
constexpr std::size_t kSlots = 4;

/// A GPU's end of the way. Marks belong to the device that they were made on.
struct End {
  cudaStream_t stream = nullptr;
  std::array<StreamMark, kSlots> marks;  // what the stream last did with a slot
};

struct Way {
  explicit Way(cudaStream_t stream) : slots(static_cast<std::int64_t>(kSlots) * kPieceBytes) {
    own = std::make_unique<End>();
    own->stream = stream;
    const OnDevice device(kPeer);
    peer_stream = std::make_unique<CudaStream>();
    peer = std::make_unique<End>();
    peer->stream = *peer_stream;
  }

  void copy(void* to, const void* from, std::int64_t bytes, const End& reader, const End& writer) {
    std::size_t slot = 0;
    for (std::int64_t at = 0; at < bytes; at += kPieceBytes) {
      const std::int64_t piece = std::min(kPieceBytes, bytes - at);
      std::uint8_t* const host = slots.data() + static_cast<std::int64_t>(slot) * kPieceBytes;
      writer.marks[slot].hold(reader.stream);
      copies.copy(host, static_cast<const std::uint8_t*>(from) + at, piece, reader.stream);
      reader.marks[slot].set(reader.stream);
      reader.marks[slot].hold(writer.stream);
      copies.copy(static_cast<std::uint8_t*>(to) + at, host, piece, writer.stream);
      writer.marks[slot].set(writer.stream);
      slot = (slot + 1) % kSlots;
    }
  }

  PinnedMemory slots;  // [kSlots, kPieceBytes]
  WatchedCopies copies;
  std::unique_ptr<CudaStream> peer_stream;
  std::unique_ptr<End> own, peer;
};

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  const std::int64_t bytes = 4 * p.words;
  const auto there = peer_memory(bytes);
  const auto way = std::make_shared<Way>(cuda.stream);
  return lab::counted({.name = "host_bytes", .total = [way] { return way->copies.host_bytes(); }},
                      [p, there, way, bytes] {
                        way->copy(there->data(), p.in, bytes, *way->own, *way->peer);
                        // The last piece that comes back ends in the first GPU's stream, after all
                        // that the second one's was given.
                        way->copy(p.out, there->data(), bytes, *way->peer, *way->own);
                      });
}

}  // namespace gauntlet::ch02::peer_copy::cuda
