#include "core/storage/io_ring.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/machine/host_features.h"
#if GAUNTLET_HAVE_LIBURING
#include <liburing.h>
#endif

namespace gauntlet {

#if GAUNTLET_HAVE_LIBURING

struct IoRing::State {
  io_uring ring{};
  std::uint64_t completions = 0;
  std::uint32_t tail = 0;  // as last seen; it wraps
  ~State() { io_uring_queue_exit(&ring); }
};

Expected<void> IoRing::compiled() { return {}; }

Expected<std::unique_ptr<IoRing>> IoRing::open(unsigned depth) {
  io_uring ring{};
  if (const int error = io_uring_queue_init(depth, &ring, 0); error != 0) {
    return Error{io_uring_refusal(-error, SystemFiles())};
  }
  auto state = std::make_unique<State>();
  state->ring = ring;
  return std::unique_ptr<IoRing>(new IoRing(std::move(state)));
}

bool IoRing::prepare(const RingRead& read) {
  io_uring_sqe* entry = io_uring_get_sqe(&state_->ring);
  if (entry == nullptr) return false;
  io_uring_prep_read(entry, read.file, read.to, static_cast<unsigned>(read.bytes),
                     static_cast<std::uint64_t>(read.offset));
  io_uring_sqe_set_data64(entry, read.tag);
  return true;
}

Expected<void> IoRing::submit_and_wait(unsigned least) {
  for (;;) {
    const int submitted = io_uring_submit_and_wait(&state_->ring, least);
    if (submitted == -EINTR) continue;
    if (submitted < 0) {
      return Error{fmt::format("io_uring_enter failed: {}", std::strerror(-submitted))};
    }
    return {};
  }
}

bool IoRing::take(RingCompletion& completion) {
  io_uring_cqe* entry = nullptr;
  if (io_uring_peek_cqe(&state_->ring, &entry) != 0) return false;
  completion = {.tag = io_uring_cqe_get_data64(entry), .result = entry->res};
  io_uring_cqe_seen(&state_->ring, entry);
  return true;
}

std::uint64_t IoRing::completions() {
  const std::uint32_t tail = __atomic_load_n(state_->ring.cq.ktail, __ATOMIC_ACQUIRE);
  state_->completions += tail - std::exchange(state_->tail, tail);
  return state_->completions;
}

#else

struct IoRing::State {};

Expected<void> IoRing::compiled() {
  return Error{"this program was built without liburing: apt-get install liburing-dev, then build"};
}
Expected<std::unique_ptr<IoRing>> IoRing::open(unsigned) { return compiled().error(); }
bool IoRing::prepare(const RingRead&) { fail("a ring of a build without liburing"); }
Expected<void> IoRing::submit_and_wait(unsigned) { return compiled(); }
bool IoRing::take(RingCompletion&) { return false; }
std::uint64_t IoRing::completions() { return 0; }

#endif

IoRing::IoRing(std::unique_ptr<State> state) : state_(std::move(state)) {}
IoRing::~IoRing() = default;

}  // namespace gauntlet
