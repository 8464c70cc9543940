// HostArray: large host memory that is not zeroed and is kept when it is resized to no more than it
// had. A fresh std::vector of 256 MiB costs more in page faults than the copy into it.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace gauntlet {

template <class T>
  requires std::is_trivially_copyable_v<T>
class HostArray {
 public:
  HostArray() = default;
  explicit HostArray(std::size_t count) { resize(count); }
  HostArray(HostArray&& other) noexcept { swap(other); }
  HostArray& operator=(HostArray&& other) noexcept {
    swap(other);
    return *this;
  }
  ~HostArray() {
    if (data_) munmap(data_, capacity_bytes_);
  }

  /// Contents are unspecified afterwards.
  void resize(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes > capacity_bytes_) {
      if (data_) munmap(data_, capacity_bytes_);
      data_ = nullptr;
      capacity_bytes_ = 0;
      void* memory =
          mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) throw std::bad_alloc();
      madvise(memory, bytes, MADV_HUGEPAGE);
      data_ = static_cast<T*>(memory);
      capacity_bytes_ = bytes;
    }
    size_ = count;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t index) { return data_[index]; }
  const T& operator[](std::size_t index) const { return data_[index]; }
  operator std::span<T>() { return {data_, size_}; }

 private:
  void swap(HostArray& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_bytes_, other.capacity_bytes_);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_bytes_ = 0;
};

}  // namespace gauntlet
