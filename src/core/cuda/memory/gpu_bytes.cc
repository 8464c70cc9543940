#include "core/cuda/memory/gpu_bytes.h"

#include "core/cuda/device.h"
#include "core/cuda/gpu_set.h"
#include "core/cuda/memory.h"
#include "core/cuda/stream_copies.h"

namespace gauntlet {
namespace {

class Bytes final : public GpuBytes {
 public:
  Bytes(int device, std::size_t bytes)
      : device_(device), memory_(static_cast<std::int64_t>(bytes)) {}

  std::byte* data() const override { return reinterpret_cast<std::byte*>(memory_.data()); }
  void upload(std::size_t to, const void* from, std::size_t bytes) override {
    const OnDevice on(device_);
    copies_.copy(data() + to, from, bytes, stream_);
  }
  void download(void* to, std::size_t from, std::size_t bytes) override {
    const OnDevice on(device_);
    copies_.copy(to, data() + from, bytes, stream_);
  }
  void wait() override { stream_.wait(); }
  std::uint64_t link_bytes() const override { return copies_.bytes(); }

 private:
  int device_;
  DeviceMemory memory_;
  CudaStream stream_;
  StreamCopies copies_;
};

}  // namespace

Expected<std::unique_ptr<GpuBytes>> GpuBytes::make(int number, std::size_t bytes) {
  const GpuQuery query = query_gpus();
  if (query.gpus.empty()) return Error{query.reason, ErrorKind::environment};
  const int device = number % static_cast<int>(query.gpus.size());
  const OnDevice on(device);
  return std::unique_ptr<GpuBytes>(std::make_unique<Bytes>(device, bytes));
}

Expected<std::shared_ptr<std::byte>> pinned_bytes(std::size_t bytes) {
  const auto memory = std::make_shared<PinnedMemory>(static_cast<std::int64_t>(bytes));
  return std::shared_ptr<std::byte>(memory, reinterpret_cast<std::byte*>(memory->data()));
}

}  // namespace gauntlet
