#include "lab/measure/buffer_set.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"

namespace gauntlet::lab::inline measure {
namespace {

std::uint64_t hash_name(const std::string& name) {
  std::uint64_t hash = 0;
  for (char c : name) hash = mix64(hash ^ static_cast<unsigned char>(c));
  return hash;
}

}  // namespace

void InputJob::write(void* out, std::int64_t begin, std::int64_t end) const {
  const std::size_t element = size_of(spec.type);
  if (!spec.fill.mixes) {
    check(!spec.fill.whole || (begin == 0 && end == spec.count), "a part of a whole fill");
    spec.fill.write(out, begin, end, element, random(version.whole_seed()));
    return;
  }
  const std::int64_t per_block = kInputBlockBytes / static_cast<std::int64_t>(element);
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t block = at / per_block;
    const std::int64_t stop = std::min(end, (block + 1) * per_block);
    const bool is_new = version.is_new(first_block + block);
    spec.fill.write(
        static_cast<unsigned char*>(out) + static_cast<std::size_t>(at - begin) * element, at, stop,
        element, random(is_new ? version.seed : version.older));
    at = stop;
  }
}

BufferSet::BufferSet(const Target& target, const Knobs& knobs, Backend& backend)
    : Binder(knobs, backend.rank(), backend.num_ranks()), target_(target), backend_(backend) {
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
  const Fill& fill = buffer.spec.fill;
  if (buffer.spec.role == Role::input && fill.mixes && fill.rule != Fill::Rule::zeros) {
    buffer.first_block = mixed_blocks_;
    mixed_blocks_ +=
        (static_cast<std::int64_t>(buffer.bytes) + kInputBlockBytes - 1) / kInputBlockBytes;
  }
  buffers_.push_back(std::move(buffer));
  return buffers_.back().data;
}

std::int64_t BufferSet::bytes() const {
  std::int64_t total = 0;
  for (const Buffer& buffer : buffers_) total += static_cast<std::int64_t>(buffer.bytes);
  return total;
}

InputJob BufferSet::job(std::size_t index) const { return job(index, rank()); }

InputJob BufferSet::job(std::size_t index, int of_rank) const {
  const Buffer& buffer = buffers_[index];
  return {.spec = buffer.spec,
          .data = buffer.data,
          .version = version_,
          .name_hash = hash_name(buffer.spec.name) ^
                       (of_rank == 0 ? 0 : mix64(static_cast<std::uint64_t>(of_rank))),
          .first_block = buffer.first_block};
}

void BufferSet::renew(std::uint64_t seed, InputVersion::Renewed renewed) {
  using Renewed = InputVersion::Renewed;
  check(renewed == Renewed::all || (mixes() && version_.renewed == Renewed::all),
        "inputs are renewed in parts only where they mix, and once");
  version_ = {.seed = seed,
              .older = version_.seed,
              .renewed = renewed,
              .draw = mix64(seed),
              .blocks = std::max<std::int64_t>(mixed_blocks_, 1)};
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const BufferSpec& spec = buffers_[i].spec;
    if (spec.role != Role::input) continue;
    if (renewed == Renewed::all || spec.fill.mixes) backend_.renew(job(i));
  }
}

void BufferSet::poison_outputs() {
  for (const Buffer& buffer : buffers_) {
    if (buffer.spec.role == Role::output)
      backend_.set_bytes(buffer.data, kPoisonByte, buffer.bytes);
  }
}

void BufferSet::place_pages() {
  if (target_.pair.managed_pages != ManagedPages::on_host) return;
  for (const Buffer& buffer : buffers_) {
    if (buffer.spec.role == Role::input && buffer.spec.memory == Memory::managed) {
      backend_.move_to_host(buffer.data, buffer.bytes);
    }
  }
}

}  // namespace gauntlet::lab::inline measure
