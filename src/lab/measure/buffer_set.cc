#include "lab/measure/buffer_set.h"

#include <cstring>

#include "core/check.h"
#include "core/threads.h"

namespace gauntlet::lab::inline measure {
namespace {

// Gives the reference the same parameters with pointers to the host copies of the inputs.
class HostView final : public Binder {
 public:
  HostView(const Knobs& knobs, const std::vector<BufferSet::Buffer>& buffers)
      : Binder(knobs), buffers_(buffers) {}

 protected:
  void* add(BufferSpec spec) override {
    const BufferSet::Buffer& buffer = buffers_.at(next_++);
    check(buffer.spec.name == spec.name, "bind() declares its buffers in changing order");
    return spec.role == Role::input ? const_cast<unsigned char*>(buffer.host.data()) : nullptr;
  }

 private:
  const std::vector<BufferSet::Buffer>& buffers_;
  std::size_t next_ = 0;
};

std::uint64_t hash_name(const std::string& name) {
  std::uint64_t hash = 0;
  for (char c : name) hash = mix64(hash ^ static_cast<unsigned char>(c));
  return hash;
}

void fill_host(BufferSet::Buffer& buffer, std::uint64_t seed) {
  const Fill& fill = buffer.spec.fill;
  if (!fill.write) {
    std::memset(buffer.host.data(), 0, buffer.bytes);
    return;
  }
  const Random random(seed ^ hash_name(buffer.spec.name));
  const std::size_t element = size_of(buffer.spec.type);
  if (fill.whole) {
    const std::int64_t count =
        fill.in_bytes ? static_cast<std::int64_t>(buffer.bytes) : buffer.spec.count;
    fill.write(buffer.host.data(), 0, count, random);
    return;
  }
  parallel_for(buffer.spec.count, [&](std::int64_t begin, std::int64_t end) {
    fill.write(buffer.host.data() + static_cast<std::size_t>(begin) * element, begin, end, random);
  });
}

}  // namespace

BufferSet::BufferSet(const Target& target, const Knobs& knobs, Backend& backend)
    : Binder(knobs), target_(target), backend_(backend) {
  params_ = target_.pair.bind(*this);
}

BufferSet::~BufferSet() {
  for (const Buffer& buffer : buffers_) backend_.release(buffer.base, buffer.spec.memory);
}

void* BufferSet::add(BufferSpec spec) {
  check(spec.count > 0, "buffer '" + spec.name + "' has no elements");
  Buffer buffer{.spec = std::move(spec)};
  buffer.bytes = static_cast<std::size_t>(buffer.spec.count) * size_of(buffer.spec.type);
  buffer.base = static_cast<unsigned char*>(
      backend_.allocate(buffer.bytes + 2 * kGuardBytes, buffer.spec.memory));
  buffer.data = buffer.base + kGuardBytes;
  backend_.set_bytes(buffer.base, kGuardByte, kGuardBytes);
  backend_.set_bytes(buffer.data + buffer.bytes, kGuardByte, kGuardBytes);
  if (buffer.spec.role == Role::input) buffer.host.resize(buffer.bytes);
  buffers_.push_back(std::move(buffer));
  return buffers_.back().data;
}

std::int64_t BufferSet::bytes() const {
  std::int64_t total = 0;
  for (const Buffer& buffer : buffers_) total += static_cast<std::int64_t>(buffer.bytes);
  return total;
}

void BufferSet::fill(std::uint64_t seed) {
  seed_ = seed;
  reference_.restart(seed);
  for (Buffer& buffer : buffers_) {
    if (buffer.spec.role == Role::input) {
      fill_host(buffer, seed);
      backend_.upload(buffer.data, buffer.host.data(), buffer.bytes);
    } else if (buffer.spec.role == Role::output) {
      reference_.declare(buffer.spec.name, buffer.spec.type, buffer.spec.count);
    }
  }
  HostView view(knobs(), buffers_);
  const auto host_params = target_.pair.bind(view);
  target_.pair.reference(host_params, reference_);
}

void BufferSet::poison_outputs() {
  for (const Buffer& buffer : buffers_) {
    if (buffer.spec.role == Role::output)
      backend_.set_bytes(buffer.data, kPoisonByte, buffer.bytes);
  }
}

void BufferSet::reset() {
  if (target_.pair.reset) target_.pair.reset(params_);
}

}  // namespace gauntlet::lab::inline measure
