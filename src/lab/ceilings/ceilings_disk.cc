// What the disk gives at most when it is read in order: past the page cache by one thread and by
// all, through a deep queue, and through the page cache.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
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
constexpr int kDiskPasses = 5;  // over the file; a sample is one
constexpr std::uint64_t kInFlight = 32;

class DiskReads {
 public:
  explicit DiskReads(const DataFile& file)
      : file_(file),
        pool_(allowed_cpus()),
        // As for any reader of the catalogue: out of small pages a disk that takes addresses page
        // by page is slower.
        buffer_(kDiskFileBytes) {}

  /// One request after the other, every thread in its own part of the file.
  Expected<void> blocking(int file, int threads, std::int64_t request) {
    std::vector<Expected<void>> done(static_cast<std::size_t>(pool_.size()));
    const std::int64_t part = kDiskFileBytes / threads / kDirectBytes * kDirectBytes;
    const auto read_part = [&](int worker) {
      const std::int64_t begin = worker * part;
      const std::int64_t end = worker == threads - 1 ? kDiskFileBytes : begin + part;
      for (std::int64_t at = begin; at < end && done[worker]; at += request) {
        const auto count = static_cast<std::size_t>(std::min(request, end - at));
        done[worker] = read_fully(file, {buffer_.data() + at, count}, at);
      }
    };
    if (threads == 1) {
      read_part(0);
    } else {
      pool_.run(read_part);
    }
    const auto failed =
        std::ranges::find_if(done, [](const auto& part_done) { return !part_done; });
    return failed == done.end() ? Expected<void>{} : *failed;
  }

  Expected<void> queued(IoRing& ring, std::int64_t request) {
    std::int64_t asked = 0, left = kDiskFileBytes;
    std::uint64_t in_flight = 0;
    while (left > 0) {
      for (; in_flight < kInFlight && asked < kDiskFileBytes; asked += request, ++in_flight) {
        ring.prepare({.file = file_.direct(),
                      .to = buffer_.data() + asked,
                      .bytes = request,
                      .offset = asked});
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
};

/// A method that fails on this file system leaves no try.
template <class Pass>
void try_method(Ceilings& ceilings, const DataFile& file, const std::string& method, Pass pass) {
  std::vector<double> seconds;
  for (int i = 0; i < kDiskPasses; ++i) {
    if (!file.evict()) return;
    const auto start = Clock::now();
    if (const Expected<void> done = pass(); !done) return;
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  record(ceilings,
         {.ceiling = "disk_read", .method = method, .amount = static_cast<double>(kDiskFileBytes)},
         std::move(seconds));
}

}  // namespace

void measure_disk_ceiling(const std::filesystem::path& folder, Ceilings& ceilings) {
  std::random_device device;
  const auto file = DataFile::of_words(folder, kDiskFileBytes, Random(device()));
  if (!file) return;
  DiskReads reads(**file);
  for (const std::int64_t mib : {1, 4, 16}) {
    const std::int64_t request = mib << 20;
    try_method(ceilings, **file, fmt::format("O_DIRECT, {} MiB", mib),
               [&] { return reads.blocking((*file)->direct(), 1, request); });
    if (reads.threads() > 1) {
      try_method(ceilings, **file,
                 fmt::format("O_DIRECT, {} MiB, {} threads", mib, reads.threads()),
                 [&] { return reads.blocking((*file)->direct(), reads.threads(), request); });
    }
  }
  try_method(ceilings, **file, "page cache, 4 MiB",
             [&] { return reads.blocking((*file)->cached(), 1, std::int64_t{4} << 20); });
  if (const auto ring = IoRing::open(kInFlight); ring) {
    for (const std::int64_t kib : {256, 1024}) {
      try_method(ceilings, **file, fmt::format("io_uring, {} x {} KiB", kInFlight, kib),
                 [&] { return reads.queued(**ring, kib << 10); });
    }
  }
}

}  // namespace gauntlet::lab::inline ceilings
