#include "tests/emulated/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace gauntlet::emulated {
namespace {

constexpr std::uint32_t kOffset = 0xFFFFFF;  // of an address in the cluster; the rank is above

/// The cluster of an emulated thread, as special registers have it: kernels pass none.
thread_local Cluster* current_cluster = nullptr;
thread_local int current_thread = 0;

}  // namespace

Cluster::Cluster(Random& random, const ClusterShape& shape)
    : random_(random),
      schedule_(random),
      shape_(shape),
      blocks_(static_cast<std::size_t>(shape.blocks)),
      products_(static_cast<std::size_t>(shape.blocks)) {
  for (Block& block : blocks_) {
    // Poison: not a number, whatever the type.
    block.bytes.assign(shape.shared_bytes + 1024, 0xFF);
    const auto at = reinterpret_cast<std::uintptr_t>(block.bytes.data());
    block.shared = block.bytes.data() + (1024 - at % 1024) % 1024;
    block.warps.resize(static_cast<std::size_t>(shape.threads / kLanes));
    std::ranges::fill(block.tensor, std::bit_cast<float>(0xFFFFFFFFu));
    block.running = shape.threads;
  }
}

std::string Cluster::run(const std::function<void(int, int)>& body) {
  for (int number = 0; number < shape_.blocks * shape_.threads; ++number) {
    const int block = number / shape_.threads, thread = number % shape_.threads;
    threads_.push_back(std::make_unique<Thread>(block, thread));
    schedule_.add_thread(number / kLanes, [this, &body, number, block, thread] {
      current_cluster = this;
      current_thread = number;
      body(block, thread);
      --blocks_[static_cast<std::size_t>(block)].running;
    });
  }
  const std::string fault = schedule_.run(
      {.num_ready = [this] { return num_ready(); }, .perform = [this](int i) { perform(i); }});
  return fault.empty() ? left_over() : fault;
}

std::string Cluster::left_over() {
  if (!copies_.empty()) return "a copy is left over";
  for (const auto& products : products_) {
    if (!products.empty()) return "a product is left over";
  }
  for (const Block& block : blocks_) {
    if (!block.allocated.empty()) return "tensor memory was not given back";
  }
  return "";
}

Cluster& Cluster::current() { return *current_cluster; }

Cluster::Thread& Cluster::self() { return *threads_[static_cast<std::size_t>(current_thread)]; }

void* Cluster::shared() { return own().shared; }

std::uint32_t Cluster::rank() { return static_cast<std::uint32_t>(self().block); }

std::uint32_t Cluster::shared_address(const void* pointer) {
  const auto offset = static_cast<const unsigned char*>(pointer) - own().shared;
  if (offset < 0 || offset >= static_cast<std::ptrdiff_t>(shape_.shared_bytes)) {
    schedule_.fault("an address outside of shared memory");
  }
  return (rank() + 1) << 24 | (static_cast<std::uint32_t>(offset) + kSharedBase);
}

Cluster::Block& Cluster::block_of(std::uint32_t address) {
  const std::uint32_t block = (address >> 24) - 1;
  if (block >= blocks_.size()) schedule_.fault("an address of no block");
  if (blocks_[block].running == 0) schedule_.fault("a block was reached after its end");
  return blocks_[block];
}

std::string Cluster::place(std::uint32_t address) const {
  return fmt::format("byte {} of block {}", (address & kOffset) - kSharedBase, (address >> 24) - 1);
}

void Cluster::meet(Meeting& meeting, int needed, const std::string& tag,
                   const std::function<void()>& last) {
  if (meeting.arrived == 0) meeting.tag = tag;
  if (meeting.tag != tag) {
    schedule_.fault("some threads do " + tag + " while others do " + meeting.tag);
  }
  const int number = meeting.number;
  if (++meeting.arrived == needed) {
    last();
    meeting.arrived = 0;
    ++meeting.number;
  }
  schedule_.wait_until(tag, [&meeting, number] { return meeting.number > number; });
}

/// What a thread did to tensor memory has to be ordered before others hear of it.
void Cluster::at_sync() {
  if (self().unfenced) schedule_.fault("no fence between a use of tensor memory and a barrier");
  if (!self().loads.empty()) schedule_.fault("a barrier while sums are on their way");
}

void Cluster::sync_warp() {
  at_sync();
  meet(own().warps[static_cast<std::size_t>(self().index / kLanes)], kLanes, "syncwarp", [] {});
}

void Cluster::sync_block() {
  at_sync();
  meet(own().all, shape_.threads, "syncthreads", [] {});
  self().stale = true;
}

void Cluster::arrive_at_cluster() {
  at_sync();
  if (self().cluster_number >= 0) schedule_.fault("two arrivals at the cluster's barrier");
  self().cluster_number = cluster_.number;
  if (++cluster_.arrived == shape_.blocks * shape_.threads) {
    cluster_.arrived = 0;
    ++cluster_.number;
  }
  schedule_.wait_until("its turn", [] { return true; });
}

void Cluster::wait_for_cluster() {
  const int number = std::exchange(self().cluster_number, -1);
  if (number < 0) schedule_.fault("a wait at the cluster's barrier without an arrival");
  schedule_.wait_until("the cluster", [this, number] { return cluster_.number > number; });
  self().stale = true;
}

void Cluster::init_barrier(std::uint32_t address, std::uint32_t arrivals) {
  const auto made = own().barriers.try_emplace(address & kOffset,
                                               Barrier{.needed = arrivals, .pending = arrivals});
  if (!made.second) schedule_.fault("a barrier is made twice");
  schedule_.wait_until("its turn", [] { return true; });
}

void Cluster::publish_barriers() {
  for (auto& [at, barrier] : own().barriers) barrier.published = true;
}

Cluster::Barrier& Cluster::barrier_at(std::uint32_t address) {
  Block& block = block_of(address);
  const auto found = block.barriers.find(address & kOffset);
  if (found == block.barriers.end()) schedule_.fault("there is no barrier at " + place(address));
  if (!found->second.published) schedule_.fault("an unpublished barrier at " + place(address));
  return found->second;
}

void Cluster::complete(Barrier& barrier) {
  if (barrier.pending > 0 || barrier.bytes != 0) return;
  barrier.pending = barrier.needed;
  ++barrier.phase;
}

void Cluster::arrive(std::uint32_t address, std::int64_t bytes) {
  at_sync();
  Barrier& barrier = barrier_at(address);
  if (barrier.pending == 0) schedule_.fault("one arrival too many at " + place(address));
  barrier.bytes += bytes;
  --barrier.pending;
  complete(barrier);
  schedule_.wait_until("its turn", [] { return true; });
}

void Cluster::wait_for_phase(std::uint32_t address, std::uint32_t parity) {
  at_sync();
  const Barrier& barrier = barrier_at(address);
  schedule_.wait_until(place(address),
                       [&barrier, parity] { return (barrier.phase & 1) != parity; });
  self().stale = true;
}

void Cluster::copy(int sms, std::uint32_t to, const TileMap& map, int column, int row,
                   std::uint32_t barrier) {
  if (sms == 1 && to >> 24 != barrier >> 24) schedule_.fault("a copy tells another block");
  if (barrier_at(barrier).needed == 0) schedule_.fault("a barrier of no arrivals");
  if (map.swizzled && to % 1024 != 0) schedule_.fault("a swizzled tile between atoms");
  const auto bytes = static_cast<std::uint32_t>(map.box_rows) *
                     static_cast<std::uint32_t>(map.box_columns) *
                     static_cast<std::uint32_t>(size_of(map.type));
  const std::uint32_t first = to & kOffset;
  const Range range{static_cast<int>(to >> 24) - 1, first, first + bytes};
  if (range.end - kSharedBase > shape_.shared_bytes) schedule_.fault("a copy past shared memory");
  const auto overlaps = [&range](const Range& other) {
    return other.block == range.block && other.first < range.end && range.first < other.end;
  };
  for (const auto& [at, unused] : block_of(to).barriers) {
    if (overlaps({range.block, at, at + 8})) schedule_.fault("a copy over a barrier");
  }
  for (const Copy& other : copies_) {
    if (overlaps(other.to)) schedule_.fault("two copies at once to " + place(to));
  }
  for (const auto& products : products_) {
    for (const Product& product : products) {
      if (std::ranges::any_of(product.reads, overlaps)) {
        schedule_.fault("a copy to what a product still reads, " + place(to));
      }
    }
  }
  copies_.push_back({range, map, column, row, barrier});
  schedule_.wait_until("its turn", [] { return true; });
}

void Cluster::finish_copy(const Copy& copy) {
  const TileMap& map = copy.map;
  const int size = static_cast<int>(size_of(map.type)), row_bytes = map.box_columns * size;
  unsigned char* shared = block_of(static_cast<std::uint32_t>(copy.to.block + 1) << 24).shared;
  for (int row = 0; row < map.box_rows; ++row) {
    for (int byte = 0; byte < row_bytes; ++byte) {
      const std::int64_t from_row = copy.row + row, from_column = copy.column + byte / size;
      const bool inside =
          from_row >= 0 && from_row < map.rows && from_column >= 0 && from_column < map.columns;
      std::uint32_t at = copy.to.first + static_cast<std::uint32_t>(row * row_bytes + byte);
      // Bits 4 to 6 of an address are xored with bits 7 to 9.
      if (map.swizzled) at ^= (at >> 7 & 7) << 4;
      shared[at - kSharedBase] =
          inside ? map.address[from_row * map.pitch_bytes + from_column * size + byte % size] : 0;
    }
  }
  Barrier& barrier = barrier_at(copy.barrier);
  barrier.bytes -= copy.to.end - copy.to.first;
  complete(barrier);
}

int Cluster::num_ready() {
  int ready = static_cast<int>(copies_.size());
  for (const auto& products : products_) ready += products.empty() ? 0 : 1;
  return ready;
}

void Cluster::perform(int number) {
  if (number < static_cast<int>(copies_.size())) {
    const Copy copy = copies_[static_cast<std::size_t>(number)];
    copies_.erase(copies_.begin() + number);
    finish_copy(copy);
    return;
  }
  number -= static_cast<int>(copies_.size());
  for (auto& products : products_) {
    if (products.empty() || number-- > 0) continue;
    const Product product = std::move(products.front());
    products.pop_front();
    finish_product(product);
    return;
  }
}

}  // namespace gauntlet::emulated
