// What the disk gives at most when it is read in order: past the page cache by one thread and by
// all, through a deep queue, and through the page cache. The methods take turns, so that a moment
// in which the disk is slow is one for all of them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <random>

#include "core/os/pages.h"
#include "core/os/threads.h"
#include "core/storage/data_file.h"
#include "core/storage/io_ring.h"
#include "lab/ceilings/ceiling_backends.h"

namespace gauntlet::lab::inline ceilings {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kDiskFileBytes = std::int64_t{256} << 20;
constexpr std::int64_t kPartBytes = std::int64_t{32} << 20;  // of a sample, from anywhere
constexpr std::int64_t kPlacesInMemory = 8;  // what is loaded goes to memory that was not just used
constexpr int kRounds = 15;
constexpr std::uint64_t kInFlight = 32;

class DiskReads {
 public:
  explicit DiskReads(const DataFile& file)
      : file_(file),
        pool_(allowed_cpus()),
        // As for any reader of the catalogue: out of small pages a disk that takes addresses page
        // by page is slower.
        buffer_(kPlacesInMemory * kPartBytes) {}

  void next_place() { to_ = buffer_.data() + ++turn_ % kPlacesInMemory * kPartBytes; }

  /// One request after the other, every thread in its own share of the part.
  Expected<void> blocking(int file, int threads, std::int64_t request, std::int64_t from) {
    std::vector<Expected<void>> done(static_cast<std::size_t>(pool_.size()));
    const std::int64_t share = kPartBytes / threads / kDirectBytes * kDirectBytes;
    const auto read_share = [&](int worker) {
      const std::int64_t begin = worker * share;
      const std::int64_t end = worker == threads - 1 ? kPartBytes : begin + share;
      for (std::int64_t at = begin; at < end && done[worker]; at += request) {
        const auto count = static_cast<std::size_t>(std::min(request, end - at));
        done[worker] = read_fully(file, {to_ + at, count}, from + at);
      }
    };
    if (threads == 1) {
      read_share(0);
    } else {
      pool_.run(read_share);
    }
    const auto failed =
        std::ranges::find_if(done, [](const auto& share_done) { return !share_done; });
    return failed == done.end() ? Expected<void>{} : *failed;
  }

  Expected<void> queued(IoRing& ring, std::int64_t request, std::int64_t from) {
    std::int64_t asked = 0, left = kPartBytes;
    std::uint64_t in_flight = 0;
    while (left > 0) {
      for (; in_flight < kInFlight && asked < kPartBytes; asked += request, ++in_flight) {
        ring.prepare(
            {.file = file_.direct(), .to = to_ + asked, .bytes = request, .offset = from + asked});
      }
      if (const auto handed_over = ring.submit_and_wait(1); !handed_over) return handed_over;
      for (RingCompletion completion; ring.take(completion); --in_flight) {
        if (completion.result != request) return Error{"a read of the disk came back short"};
        left -= request;
      }
    }
    return {};
  }

  int threads() const { return pool_.size(); }

 private:
  const DataFile& file_;
  ThreadPool pool_;
  HugePages buffer_;
  unsigned char* to_ = buffer_.data();
  std::int64_t turn_ = 0;
};

/// One way to read the part of the file that begins at a page.
struct Method {
  std::string name;
  std::function<Expected<void>(std::int64_t from)> read;
  std::vector<double> seconds = {};
  bool works = true;  // one that fails on this file system leaves no try
};

std::vector<Method> methods(const DataFile& file, DiskReads& reads, IoRing* ring) {
  std::vector<Method> all;
  for (const std::int64_t mib : {1, 4, 16}) {
    const std::int64_t request = mib << 20;
    all.push_back({fmt::format("O_DIRECT, {} MiB", mib), [&, request](std::int64_t from) {
                     return reads.blocking(file.direct(), 1, request, from);
                   }});
    if (reads.threads() > 1 && (mib == 1 || request * reads.threads() <= kPartBytes)) {
      all.push_back({fmt::format("O_DIRECT, {} MiB, {} threads", mib, reads.threads()),
                     [&, request](std::int64_t from) {
                       return reads.blocking(file.direct(), reads.threads(), request, from);
                     }});
    }
  }
  all.push_back({"page cache, 4 MiB", [&](std::int64_t from) {
                   return reads.blocking(file.cached(), 1, std::int64_t{4} << 20, from);
                 }});
  if (ring == nullptr) return all;
  for (const std::int64_t kib : {256, 1024}) {
    all.push_back(
        {fmt::format("io_uring, {} x {} KiB", kInFlight, kib),
         [&reads, ring, kib](std::int64_t from) { return reads.queued(*ring, kib << 10, from); }});
  }
  return all;
}

}  // namespace

void add_disk_ceiling(const std::filesystem::path& folder, Ceilings& ceilings) {
  std::random_device device;
  const Random random((std::uint64_t{device()} << 32) | device());
  const auto file = DataFile::of_words(folder, kDiskFileBytes, random);
  if (!file) return;
  DiskReads reads(**file);
  const auto ring = IoRing::open(kInFlight);
  std::vector<Method> all = methods(**file, reads, ring ? ring->get() : nullptr);
  constexpr std::uint64_t kPlaces = (kDiskFileBytes - kPartBytes) / kDirectBytes + 1;
  std::uint64_t sample = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (Method& method : all) {
      const auto place = static_cast<std::int64_t>(random.below(kPlaces, ++sample));
      method.works = method.works && (*file)->evict();
      if (!method.works) continue;
      reads.next_place();
      const auto start = Clock::now();
      method.works = bool(method.read(place * kDirectBytes));
      method.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
  }
  for (Method& method : all) {
    if (!method.works) continue;
    record_median(
        ceilings,
        {.ceiling = "disk_read", .method = method.name, .amount = static_cast<double>(kPartBytes)},
        std::move(method.seconds));
  }
}

}  // namespace gauntlet::lab::inline ceilings
