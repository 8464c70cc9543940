#include "engine/cuda/ranks/peer_sum.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <string>
#include <thread>

#include "core/check.h"
#include "kernels/cuda/rows/peer_rows.h"

namespace gauntlet::engine::cuda::inline gpu_ranks {
namespace {

using namespace kernels::cuda;

constexpr std::int64_t kAlignment = 256;
constexpr double kReleasing_s = 10;
/// At whether the other ranks' processes are still there.
constexpr std::chrono::milliseconds kBetweenLooks(5);

}  // namespace

PeerSum::Layout PeerSum::lay_out(const RankGroups& groups) {
  Layout layout;
  const auto place = [&](int slot, std::int64_t numbers) {
    layout.begins[static_cast<std::size_t>(slot)] = layout.bytes;
    const std::int64_t bytes = numbers * static_cast<std::int64_t>(sizeof(float));
    layout.bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  };
  const int used = groups.layers % 2 == 0 ? 2 : kSumSlots;
  for (int slot = 0; slot < 2 * kSumSlots; ++slot) {
    // Ranks agree on the layout: it says nothing of who sums what with whom.
    place(slot, slot % kSumSlots < used ? groups.tokens * groups.hidden : 0);
  }
  for (int slot = 2 * kSumSlots; slot < kSlots; ++slot) {
    place(slot, groups.logit_rows * groups.widest_vocab());
  }
  return layout;
}

Expected<std::shared_ptr<PeerSum>> PeerSum::make(ranks::Group& group, RankGroups groups) {
  check(group.rank() == groups.rank && group.size() == groups.size(), "the groups are this one's");
  check(groups.hidden % 4 == 0, "rows are whole groups of four");
  if (groups.size() > kMostPeers) {
    return Error{fmt::format("{} ranks share a GPU; at most {} can", groups.size(), kMostPeers),
                 ErrorKind::wrong_use};
  }
  if (groups.layers < 2) {
    return Error{"a model of one layer cannot be divided among ranks of a GPU",
                 ErrorKind::wrong_use};
  }
  const Layout layout = lay_out(groups);
  auto window = PeerWindow::open(group, layout.bytes, kSlots, groups.meeting);
  if (!window) return window.error();
  auto processes = ranks::ProcessWatch::of(group);
  if (!processes) return processes.error();
  auto messages = group.open_channel(1);
  if (!messages) return messages.error();
  return std::shared_ptr<PeerSum>(new PeerSum(std::move(groups), layout, std::move(*window),
                                              std::move(*processes), std::move(*messages)));
}

float* PeerSum::slot_of(int rank, int slot) const {
  return reinterpret_cast<float*>(window_->memory_of(rank) +
                                  layout_.begins[static_cast<std::size_t>(slot)]);
}

int PeerSum::next_slot(SumOf of) {
  std::int64_t& layer = layer_[static_cast<std::size_t>(of)];
  const bool is_odd_one_out = groups_.layers % 2 == 1 && layer == groups_.layers - 1;
  const int slot = is_odd_one_out ? 2 : static_cast<int>(layer % 2);
  layer = (layer + 1) % groups_.layers;
  return static_cast<int>(of) * kSumSlots + slot;
}

void PeerSum::add_up(const PartialRows& part, void* stream) {
  check(part.rows <= groups_.tokens && part.width == groups_.hidden, "rows fit their window");
  gathers_ = 0;
  const int slot = next_slot(part.of);
  const std::vector<int>& ranks = groups_.of(part.of);
  if (ranks.size() < 2) return;
  auto* queue = static_cast<cudaStream_t>(stream);
  // A sum of one: a copy into this rank's own window.
  AddParts leave{.num_ranks = 1, .out = slot_of(groups_.rank, slot), .count = part.count()};
  leave.parts[0] = part.values;
  add_parts(leave, {.stream = queue});
  window_->meet(ranks, slot, queue);
  AddParts sum{
      .num_ranks = static_cast<int>(ranks.size()), .out = part.values, .count = part.count()};
  for (std::size_t r = 0; r < ranks.size(); ++r) sum.parts[r] = slot_of(ranks[r], slot);
  add_parts(sum, {.stream = queue});
}

void PeerSum::gather(const PartialColumns& part, void* stream) {
  if (groups_.size() < 2) return;
  check(part.rows <= groups_.logit_rows, "columns fit their window");
  auto* queue = static_cast<cudaStream_t>(stream);
  const int slot = 2 * kSumSlots + gathers_++ % kGatherSlots;
  const auto part_of = [&](int rank) {
    const model::Range& columns = groups_.vocab[static_cast<std::size_t>(rank)];
    return ColumnPart{
        .values = slot_of(rank, slot), .first = columns.begin, .width = columns.size()};
  };
  take_columns({.x = part.values,
                .stride = part.stride,
                .num_rows = part.rows,
                .part = part_of(groups_.rank)},
               {.stream = queue});
  std::vector<int> all;
  PutColumns others{.x = part.values, .stride = part.stride, .num_rows = part.rows};
  for (int r = 0; r < groups_.size(); ++r) {
    all.push_back(r);
    if (r != groups_.rank) others.parts[others.num_parts++] = part_of(r);
  }
  window_->meet(all, slot, queue);
  put_columns(others, {.stream = queue});
}

std::unique_lock<std::mutex> PeerSum::turn() {
  if (!window_->shares_process()) return {};
  return std::unique_lock(PeerWindow::launching());
}

void PeerSum::wait(const std::function<bool()>& is_done) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(groups_.timeout_s);
  auto next_look = Clock::now() + kBetweenLooks;
  while (!is_done()) {
    if (!lost_.empty()) give_up(lost_, is_done);
    // The step that is waited for may be a message that is still on its way to the others.
    (void)messages_->flushed(0);
    std::this_thread::yield();
    if (Clock::now() < next_look) continue;
    next_look = Clock::now() + kBetweenLooks;
    if (const auto ended = processes_->ended(); !ended.empty()) {
      give_up(
          fmt::format("rank {} ended before a sum on the GPU: {}", ended[0].rank, ended[0].text()),
          is_done);
    }
    if (Clock::now() < end) continue;
    give_up(fmt::format("rank {} did not come to a sum on the GPU within {:g} s",
                        fmt::join(window_->missing(), ", "), groups_.timeout_s),
            is_done);
  }
}

void PeerSum::give_up(const std::string& why, const std::function<bool()>& is_done) {
  lost_ = why;
  window_->release(is_done, kReleasing_s);
  throw RankFailure(why);
}

}  // namespace gauntlet::engine::cuda::inline gpu_ranks
