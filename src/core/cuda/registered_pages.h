// Huge pages of the host that the device copies from and to without a detour: where a disk writes
// into what is copied on.
#pragma once
#include <cstdint>

#include "core/cuda/check.h"
#include "core/os/pages.h"

namespace gauntlet {

class RegisteredPages {
 public:
  explicit RegisteredPages(std::int64_t bytes) : pages_(bytes) {
    cuda_check(cudaHostRegister(pages_.data(), static_cast<std::size_t>(pages_.bytes()),
                                cudaHostRegisterDefault));
  }
  ~RegisteredPages() { cudaHostUnregister(pages_.data()); }
  RegisteredPages(const RegisteredPages&) = delete;
  RegisteredPages& operator=(const RegisteredPages&) = delete;

  unsigned char* data() const { return pages_.data(); }

 private:
  HugePages pages_;
};

/// Whether CUDA knows that memory as page-locked, by cudaPointerGetAttributes.
inline double page_locked(const void* host) {
  cudaPointerAttributes attributes{};
  cuda_check(cudaPointerGetAttributes(&attributes, host));
  return attributes.type == cudaMemoryTypeHost ? 1 : 0;
}

}  // namespace gauntlet
