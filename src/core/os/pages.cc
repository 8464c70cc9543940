#include "core/os/pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <new>
#include <sstream>

#include "core/os/system_files.h"

// Linux 6.1; the C library of Debian 12 does not have it.
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace gauntlet {
namespace {

struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  void* data() const { return reinterpret_cast<void*>(begin); }
  std::size_t bytes() const { return end - begin; }
};

/// The units of this size that lie wholly in a range.
Range whole_units(void* data, std::int64_t bytes, std::uintptr_t unit) {
  const auto from = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t begin = (from + unit - 1) / unit * unit;
  const std::uintptr_t end = (from + static_cast<std::uintptr_t>(bytes)) / unit * unit;
  return {begin, std::max(begin, end)};
}

/// "7f12a000-7f12c000 rw-p ..." opens the block of a mapping.
bool parse_mapping(const std::string& line, std::uint64_t& begin, std::uint64_t& end) {
  const char* last = line.data() + line.size();
  const auto [dash, first_error] = std::from_chars(line.data(), last, begin, 16);
  if (first_error != std::errc{} || dash == last || *dash != '-') return false;
  const auto [space, second_error] = std::from_chars(dash + 1, last, end, 16);
  return second_error == std::errc{} && space != last && *space == ' ';
}

}  // namespace

HugePages::HugePages(std::int64_t bytes)
    : bytes_((bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes) {
  const auto size = static_cast<std::size_t>(bytes_ + kHugePageBytes);
  void* mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  const Range all{reinterpret_cast<std::uintptr_t>(mapped),
                  reinterpret_cast<std::uintptr_t>(mapped) + size};
  const Range whole = whole_units(mapped, static_cast<std::int64_t>(size), kHugePageBytes);
  data_ = static_cast<unsigned char*>(whole.data());
  const std::uintptr_t end = whole.begin + static_cast<std::uintptr_t>(bytes_);
  if (whole.begin > all.begin) ::munmap(mapped, whole.begin - all.begin);
  if (all.end > end) ::munmap(reinterpret_cast<void*>(end), all.end - end);
  ::madvise(data_, static_cast<std::size_t>(bytes_), MADV_HUGEPAGE);
  std::memset(data_, 0, static_cast<std::size_t>(bytes_));
}

HugePages::~HugePages() { ::munmap(data_, static_cast<std::size_t>(bytes_)); }

void use_huge_pages(void* data, std::int64_t bytes) {
  const Range range = whole_units(data, bytes, kHugePageBytes);
  if (range.bytes() == 0) return;
  ::madvise(range.data(), range.bytes(), MADV_HUGEPAGE);
  ::madvise(range.data(), range.bytes(), MADV_COLLAPSE);
}

void use_small_pages(void* data, std::int64_t bytes) {
  const Range range = whole_units(data, bytes, 4096);
  if (range.bytes() == 0) return;
  // A huge page stays one when it is advised against: it has to go first.
  ::madvise(range.data(), range.bytes(), MADV_NOHUGEPAGE);
  ::madvise(range.data(), range.bytes(), MADV_DONTNEED);
  std::memset(range.data(), 0, range.bytes());
}

std::int64_t huge_page_bytes(const std::string& smaps, std::uint64_t begin, std::uint64_t end) {
  double total = 0;
  double share = 0;  // of the current mapping that lies in the range
  std::istringstream lines(smaps);
  for (std::string line; std::getline(lines, line);) {
    std::uint64_t from = 0, to = 0;
    if (parse_mapping(line, from, to)) {
      const std::uint64_t first = std::max(from, begin), last = std::min(to, end);
      share = last > first ? static_cast<double>(last - first) / static_cast<double>(to - from) : 0;
    } else if (share > 0 && line.starts_with("AnonHugePages:")) {
      const std::size_t number = line.find_first_of("0123456789");
      if (number == std::string::npos) continue;
      const auto kib = leading_number(line.substr(number)).value_or(0);
      total += share * 1024 * static_cast<double>(kib);
    }
  }
  return static_cast<std::int64_t>(total);
}

std::int64_t huge_page_bytes(const void* data, std::int64_t bytes) {
  std::ifstream file("/proc/self/smaps");
  std::ostringstream text;
  text << file.rdbuf();
  const auto begin = reinterpret_cast<std::uint64_t>(data);
  return huge_page_bytes(text.str(), begin, begin + static_cast<std::uint64_t>(bytes));
}

}  // namespace gauntlet
