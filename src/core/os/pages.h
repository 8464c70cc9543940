// Pages: memory in huge pages, what the kernel says of a range of memory, and moving a range from
// one size of page to another.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace gauntlet {

constexpr std::int64_t kHugePageBytes = std::int64_t{2} << 20;

/// Anonymous memory, aligned to a huge page and made of them where the kernel has some left. Zeroed
/// and touched.
class HugePages {
 public:
  explicit HugePages(std::int64_t bytes);
  ~HugePages();
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;

  unsigned char* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  unsigned char* data_ = nullptr;
  std::int64_t bytes_ = 0;  // mapped
};

/// Makes a range of anonymous memory, contents and all, one of huge pages as far as those that lie
/// wholly in it go. A kernel without leaves it as it is: huge_page_bytes() says what came of it.
void use_huge_pages(void* data, std::int64_t bytes);
/// Makes it one of small pages, zeroed, whatever the system prefers.
void use_small_pages(void* data, std::int64_t bytes);

/// How much of a range is in transparent huge pages, by /proc/self/smaps (AnonHugePages of the
/// mappings that lie in it). Mappings that stick out count in proportion.
std::int64_t huge_page_bytes(const void* data, std::int64_t bytes);
/// The same from the text of an smaps file.
std::int64_t huge_page_bytes(const std::string& smaps, std::uint64_t begin, std::uint64_t end);

}  // namespace gauntlet
