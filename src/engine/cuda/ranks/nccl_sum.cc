#include "engine/cuda/ranks/nccl_sum.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "core/check.h"
#include "kernels/cuda/rows/peer_rows.h"

namespace gauntlet::engine::cuda::inline gpu_ranks {
namespace {

using namespace kernels::cuda;

/// At NCCL, and at whether the other ranks' processes are still there.
constexpr std::chrono::milliseconds kBetweenNcclLooks(5);

std::int64_t bytes_of_columns(const RankGroups& groups) {
  return groups.logit_rows * groups.widest_vocab() * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace

NcclSum::NcclSum(RankGroups groups)
    : groups_(std::move(groups)),
      own_columns_(bytes_of_columns(groups_)),
      all_columns_(bytes_of_columns(groups_) * groups_.size()) {}

Expected<std::shared_ptr<NcclSum>> NcclSum::make(ranks::Group& group, RankGroups groups) {
  check(group.rank() == groups.rank && group.size() == groups.size(), "the groups are this one's");
  if (groups.size() > kMostPeers) {
    return Error{fmt::format("{} ranks of GPUs; at most {} are taken", groups.size(), kMostPeers),
                 ErrorKind::wrong_use};
  }
  auto all = NcclRanks::join(group);
  if (!all) return all.error();
  std::shared_ptr<NcclSum> sum(new NcclSum(std::move(groups)));
  sum->all_ = std::move(*all);
  const auto& attention = sum->groups_.attention;
  // Alike on all ranks: they divide attention in groups of one size.
  if (attention.size() > 1 && std::ssize(attention) < group.size()) {
    auto divided = group.split(attention.front());
    if (!divided) return divided.error();
    auto joined = NcclRanks::join(**divided);
    if (!joined) return joined.error();
    sum->attention_ = std::move(*joined);
  }
  auto processes = ranks::ProcessWatch::of(group);
  if (!processes) return processes.error();
  sum->processes_ = std::move(*processes);
  auto messages = group.open_channel(1);
  if (!messages) return messages.error();
  sum->messages_ = std::move(*messages);
  return sum;
}

void NcclSum::add_up(const PartialRows& part, void* stream) {
  const bool is_divided =
      part.of == SumOf::experts || groups_.attention.size() > 1 || groups_.size() == 1;
  if (!is_divided) return;
  NcclRanks& ranks = part.of == SumOf::attention && attention_ ? *attention_ : *all_;
  ranks.all_sum(part.values, part.count(), static_cast<cudaStream_t>(stream));
}

void NcclSum::gather(const PartialColumns& part, void* stream) {
  check(part.rows <= groups_.logit_rows, "columns fit their memory");
  auto* queue = static_cast<cudaStream_t>(stream);
  auto* own = reinterpret_cast<float*>(own_columns_.data());
  auto* all = reinterpret_cast<float*>(all_columns_.data());
  // Parts of one size for all: what is behind a narrow one is not put anywhere.
  const std::int64_t numbers = part.rows * groups_.widest_vocab();
  const auto part_of = [&](int rank, float* values) {
    const model::Range& columns = groups_.vocab[static_cast<std::size_t>(rank)];
    return ColumnPart{.values = values, .first = columns.begin, .width = columns.size()};
  };
  take_columns({.x = part.values,
                .stride = part.stride,
                .num_rows = part.rows,
                .part = part_of(groups_.rank, own)},
               {.stream = queue});
  all_->all_gather(own, numbers, all, queue);
  PutColumns others{.x = part.values, .stride = part.stride, .num_rows = part.rows};
  for (int r = 0; r < groups_.size(); ++r) {
    if (r != groups_.rank) others.parts[others.num_parts++] = part_of(r, all + r * numbers);
  }
  if (others.num_parts > 0) put_columns(others, {.stream = queue});
}

void NcclSum::wait(const std::function<bool()>& is_done) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(groups_.timeout_s);
  auto next_look = Clock::now() + kBetweenNcclLooks;
  while (!is_done()) {
    if (!lost_.empty()) give_up(lost_);
    // The step that is waited for may be a message that is still on its way to the others.
    (void)messages_->flushed(0);
    std::this_thread::yield();
    if (Clock::now() < next_look) continue;
    next_look = Clock::now() + kBetweenNcclLooks;
    if (const auto ended = processes_->ended(); !ended.empty()) {
      give_up(
          fmt::format("rank {} ended before a sum by NCCL: {}", ended[0].rank, ended[0].text()));
    }
    if (const std::string failure = all_->failure(); !failure.empty()) {
      give_up("a sum by NCCL failed: " + failure);
    }
    if (Clock::now() > end) {
      give_up(fmt::format("another rank did not come to a sum by NCCL within {:g} s",
                          groups_.timeout_s));
    }
  }
}

void NcclSum::give_up(const std::string& why) {
  lost_ = why;
  if (attention_) attention_->abort();
  all_->abort();
  throw RankFailure(why);
}

}  // namespace gauntlet::engine::cuda::inline gpu_ranks
