// A table that all workers use, part by part, and who touches its pages first.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "catalog/ch03/first_touch/pair.h"
#include "core/machine/numa.h"
#include "core/os/threads.h"

namespace gauntlet::ch03::first_touch {

/// Pages that nobody has touched yet.
class Table {
 public:
  explicit Table(std::int64_t words) : bytes_(static_cast<std::size_t>(8 * words)) {
    void* mapped =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    words_ = static_cast<std::uint64_t*>(mapped);
  }
  ~Table() { munmap(words_, bytes_); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  std::uint64_t* words() const { return words_; }
  void touch(std::int64_t begin, std::int64_t end) {
    std::memset(words_ + begin, 0, static_cast<std::size_t>(8 * (end - begin)));
  }

 private:
  std::uint64_t* words_ = nullptr;
  std::size_t bytes_;
};

/// Every worker takes its part of the input into the table and passes over that again and again.
inline void use_table(const Params& p, std::uint64_t* table, ThreadPool& pool) {
  pool.for_ranges(p.words, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(table + begin, p.in + begin, static_cast<std::size_t>(8 * (end - begin)));
  });
  for (std::int64_t pass = 0; pass < p.passes; ++pass) {
    const std::uint64_t factor = p.factor[pass];
    pool.for_ranges(p.words, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) table[i] = table[i] * factor + 1;
    });
  }
  pool.for_ranges(p.words, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(p.out + begin, table + begin, static_cast<std::size_t>(8 * (end - begin)));
  });
}

/// Of each worker's part of the table the share on its node, by move_pages(); the least of them,
/// and nothing where the kernel does not say.
inline double least_local_share(const Params& p, const std::uint64_t* table, ThreadPool& pool) {
  std::vector<double> shares(static_cast<std::size_t>(pool.size()), 0.0);
  pool.run([&](int worker) {
    const std::int64_t part = p.words / pool.size();
    const auto places = places_here();
    if (!places) return;
    const auto share = share_on_node(table + worker * part, 8 * part, places->local);
    shares[static_cast<std::size_t>(worker)] = share ? *share : 0;
  });
  return *std::ranges::min_element(shares);
}

}  // namespace gauntlet::ch03::first_touch
