#include "engine/cuda/ranks/peer_window.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include "core/check.h"
#include "core/cuda/stream_flags.h"
#include "core/os/files.h"
#include "engine/steps/rank_sum.h"

namespace gauntlet::engine::cuda::inline gpu_ranks {
namespace {

constexpr std::int64_t kAlignment = 256;

/// What a rank tells the others about its window.
struct Card {
  std::uint64_t boot = 0;
  std::uint64_t process = 0;  // a number of chance: containers count processes alike
  char gpu[16] = {};
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t slots = 0;
  cudaIpcMemHandle_t handle = {};
};

std::uint64_t number_of_process() {
  static const std::uint64_t kNumber = [] {
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
  }();
  return kNumber;
}

Card card_of(const DeviceMemory& memory, int slots) {
  Card card{.process = number_of_process(), .bytes = memory.bytes(), .slots = slots};
  const auto boot = read_file("/proc/sys/kernel/random/boot_id");
  card.boot = std::hash<std::string>()(boot ? *boot : std::string());
  int device = 0;
  cudaDeviceProp properties{};
  cuda_check(cudaGetDevice(&device));
  cuda_check(cudaGetDeviceProperties(&properties, device));
  std::memcpy(card.gpu, properties.uuid.bytes, sizeof(card.gpu));
  card.address = reinterpret_cast<std::uint64_t>(memory.data());
  // Where there is none, opening it will say so: threads of one process need none.
  if (cudaIpcGetMemHandle(&card.handle, memory.data()) != cudaSuccess) cudaGetLastError();
  return card;
}

Expected<void> check_card(const Card& own, const Card& other, int rank) {
  if (other.boot != own.boot) {
    return Error{fmt::format("rank {} runs on another host: ranks of GPUs share one", rank)};
  }
  if (std::memcmp(other.gpu, own.gpu, sizeof(own.gpu)) != 0) {
    return Error{fmt::format("rank {} has another GPU: by CUDA IPC ranks sum on one", rank)};
  }
  check(other.bytes == own.bytes && other.slots == own.slots, "windows of one group are alike");
  return {};
}

}  // namespace

PeerWindow::PeerWindow(std::int64_t bytes, int slots, int rank, int size)
    : flags_at_((bytes + kAlignment - 1) / kAlignment * kAlignment),
      slots_(slots),
      rank_(rank),
      own_(flags_at_ + std::int64_t{slots} * size * 4),
      bases_(static_cast<std::size_t>(size)) {
  cuda_check(cudaMemsetAsync(own_.data(), 0, static_cast<std::size_t>(own_.bytes()), side_));
  side_.wait();
}

PeerWindow::~PeerWindow() {
  for (void* base : opened_) cudaIpcCloseMemHandle(base);
}

Expected<std::unique_ptr<PeerWindow>> PeerWindow::open(ranks::Group& group, std::int64_t bytes,
                                                       int slots, RankMeeting meeting) {
  if (const auto can = stream_flags_available(); !can) return can.error();
  const int rank = group.rank(), size = group.size();
  std::unique_ptr<PeerWindow> window(new PeerWindow(bytes, slots, rank, size));
  const Card own = card_of(window->own_, slots);
  std::vector<Card> cards(static_cast<std::size_t>(size));
  const auto told =
      group.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(cards)));
  if (!told) return told.error();
  for (int r = 0; r < size; ++r) {
    const Card& card = cards[static_cast<std::size_t>(r)];
    if (const auto fits = check_card(own, card, r); !fits) return fits.error();
    std::uint8_t*& base = window->bases_[static_cast<std::size_t>(r)];
    if (card.process == own.process) {
      base = reinterpret_cast<std::uint8_t*>(card.address);
      window->shares_process_ = window->shares_process_ || r != rank;
      continue;
    }
    void* opened = nullptr;
    const cudaError_t status =
        cudaIpcOpenMemHandle(&opened, card.handle, cudaIpcMemLazyEnablePeerAccess);
    if (status != cudaSuccess) {
      cudaGetLastError();
      return Error{fmt::format("the memory of rank {} cannot be opened by CUDA IPC: {}", r,
                               cudaGetErrorString(status))};
    }
    window->opened_.push_back(opened);
    base = static_cast<std::uint8_t*>(opened);
  }
  if (meeting == RankMeeting::on_hosts) window->hosts_ = &group;
  // Nobody sets a flag in memory that its owner still clears.
  if (const auto all = group.barrier(); !all) return all.error();
  return window;
}

std::mutex& PeerWindow::launching() {
  static std::mutex mutex;
  return mutex;
}

void PeerWindow::meet(std::span<const int> ranks, int slot, cudaStream_t stream) const {
  check(slot >= 0 && slot < slots_, "a slot that was opened");
  if (hosts_ != nullptr) {
    cuda_check(cudaStreamSynchronize(stream));
    if (shares_process_) launching().unlock();
    const auto met = hosts_->barrier();
    if (shares_process_) launching().lock();
    if (!met) throw RankFailure(met.error().message);
    return;
  }
  using What = StreamFlag::What;
  std::vector<StreamFlag> operations;
  for (const int r : ranks) {
    if (r != rank_) operations.push_back({What::set, flag(r, slot, rank_), 1});
  }
  for (const int r : ranks) {
    if (r != rank_) operations.push_back({What::wait_for, flag(rank_, slot, r), 1});
  }
  // Before this rank sets any further flag, so before that one can set this again.
  for (const int r : ranks) {
    if (r != rank_) operations.push_back({What::set, flag(rank_, slot, r), 0});
  }
  enqueue(operations, stream);
}

bool PeerWindow::release(const std::function<bool()>& is_done, double seconds) const {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::vector<StreamFlag> all;
  for (int slot = 0; slot < slots_; ++slot) {
    for (int r = 0; r < size(); ++r)
      all.push_back({StreamFlag::What::set, flag(rank_, slot, r), 1});
  }
  while (!is_done()) {
    if (Clock::now() > end) return false;
    enqueue(all, side_);
    side_.wait();
  }
  return true;
}

std::vector<int> PeerWindow::missing() const {
  const auto count = static_cast<std::size_t>(slots_) * bases_.size();
  std::vector<std::uint32_t> flags(count);
  cuda_check(cudaMemcpyAsync(flags.data(), flag(rank_, 0, 0), count * sizeof(flags[0]),
                             cudaMemcpyDeviceToHost, side_));
  side_.wait();
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r) {
    bool has_set = r == rank_;
    for (int slot = 0; slot < slots_; ++slot) {
      has_set = has_set || flags[static_cast<std::size_t>(slot * size() + r)] != 0;
    }
    if (!has_set) ranks.push_back(r);
  }
  return ranks;
}

}  // namespace gauntlet::engine::cuda::inline gpu_ranks
