#include "lab/measure/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "core/check.h"
#include "core/os/threads.h"

namespace gauntlet::lab::inline measure {
namespace {

using Buffer = BufferSet::Buffer;

enum class Guard { intact, broken, unreadable };

Guard guard_at(const BufferSet& set, const unsigned char* zone) {
  std::array<unsigned char, BufferSet::kGuardBytes> bytes;
  if (!set.backend().download(bytes.data(), zone, bytes.size())) return Guard::unreadable;
  const bool intact =
      std::ranges::all_of(bytes, [](unsigned char byte) { return byte == BufferSet::kGuardByte; });
  return intact ? Guard::intact : Guard::broken;
}

Verdict unreadable(const Buffer& buffer) {
  return Verdict::refuse(fmt::format(
      "made '{}' unreadable: what is computed when it is read was not timed", buffer.spec.name));
}

/// Order-sensitive hash of whole blocks, combined in order: equal for equal bytes only, for all
/// practical purposes.
std::uint64_t hash_bytes(std::span<const unsigned char> bytes) {
  constexpr std::int64_t kBlock = 1 << 16;
  const auto size = static_cast<std::int64_t>(bytes.size());
  const std::int64_t blocks = (size + kBlock - 1) / kBlock;
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(blocks));
  parallel_for(
      blocks,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t block = begin; block < end; ++block) {
          const std::int64_t from = block * kBlock, to = std::min(size, from + kBlock);
          std::uint64_t hash = static_cast<std::uint64_t>(to - from);
          std::int64_t at = from;
          for (; at + 8 <= to; at += 8) {
            std::uint64_t word;
            std::memcpy(&word, bytes.data() + at, 8);
            hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
            hash ^= hash >> 29;
          }
          for (; at < to; ++at) hash = mix64(hash ^ bytes[static_cast<std::size_t>(at)]);
          hashes[static_cast<std::size_t>(block)] = hash;
        }
      },
      16);
  std::uint64_t hash = 0;
  for (std::uint64_t block : hashes) hash = mix64(hash ^ block);
  return hash;
}

bool same_bytes(const HostArray<unsigned char>& a, const HostArray<unsigned char>& b) {
  if (a.size() != b.size()) return false;
  std::atomic<bool> same{true};
  parallel_for(static_cast<std::int64_t>(a.size()), [&](std::int64_t begin, std::int64_t end) {
    const auto count = static_cast<std::size_t>(end - begin);
    if (std::memcmp(a.data() + begin, b.data() + begin, count) != 0) same = false;
  });
  return same;
}

/// Makes an input again from its version.
void make_again(const InputJob& job, HostArray<unsigned char>& out) {
  const std::size_t element = size_of(job.spec.type);
  out.resize(static_cast<std::size_t>(job.spec.count) * element);
  if (job.spec.fill.whole) {
    job.write(out.data(), 0, job.spec.count);
    return;
  }
  parallel_for(job.spec.count, [&](std::int64_t begin, std::int64_t end) {
    job.write(out.data() + static_cast<std::size_t>(begin) * element, begin, end);
  });
}

/// Gives the reference the same parameters with pointers to the inputs as they were made.
class HostView final : public Binder {
 public:
  HostView(const Knobs& knobs, const BufferSet& set, std::vector<HostArray<unsigned char>>& inputs)
      : Binder(knobs, set.rank(), set.num_ranks()), set_(set), inputs_(inputs) {}

 protected:
  void* add(BufferSpec spec) override {
    const std::size_t index = next_++;
    check(set_.buffers().at(index).spec.name == spec.name,
          "bind() declares its buffers in changing order");
    return spec.role == Role::input ? inputs_[index].data() : nullptr;
  }

 private:
  const BufferSet& set_;
  std::vector<HostArray<unsigned char>>& inputs_;
  std::size_t next_ = 0;
};

}  // namespace

Verdict Verifier::copy(const BufferSet& set) {
  std::vector<Backend::Extent> outputs;
  for (const Buffer& buffer : set.buffers()) {
    if (buffer.spec.role == Role::output) outputs.push_back({buffer.data, buffer.bytes});
  }
  set.backend().freeze(outputs);
  Verdict verdict = copy_buffers(set);
  set.backend().freeze({});
  return verdict;
}

Verdict Verifier::copy_buffers(const BufferSet& set) {
  const auto& buffers = set.buffers();
  copies_.resize(buffers.size());
  for (const Role role : {Role::output, Role::input}) {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const Buffer& buffer = buffers[i];
      if (buffer.spec.role != role) continue;
      copies_[i].resize(buffer.bytes);
      if (!set.backend().download(copies_[i].data(), buffer.data, buffer.bytes)) {
        return unreadable(buffer);
      }
    }
  }
  for (const Buffer& buffer : buffers) {
    const auto judge_guard = [&](const unsigned char* zone, const char* where) -> Verdict {
      switch (guard_at(set, zone)) {
        case Guard::intact:
          return {};
        case Guard::broken:
          return Verdict::refuse(
              fmt::format("wrote outside of its buffers: {} of '{}'", where, buffer.spec.name));
        case Guard::unreadable:
          return unreadable(buffer);
      }
      return {};
    };
    if (Verdict front = judge_guard(buffer.base, "before the start"); !front.ok) return front;
    if (Verdict back = judge_guard(buffer.data + buffer.bytes, "past the end"); !back.ok) {
      return back;
    }
  }
  return {};
}

std::uint64_t Verifier::hash_outputs(const BufferSet& set) const {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < set.buffers().size(); ++i) {
    if (set.buffers()[i].spec.role != Role::output) continue;
    hash = mix64(hash ^ hash_bytes({copies_[i].data(), copies_[i].size()}));
  }
  return hash;
}

Verdict Verifier::judge(const BufferSet& set) {
  const Verdict copied = copy(set);
  return copied.ok ? judge_copy(set) : copied;
}

Verdict Verifier::judge_copy(const BufferSet& set) {
  const auto& buffers = set.buffers();
  inputs_.resize(buffers.size());
  reference_.restart(random_.next());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const BufferSpec& spec = buffers[i].spec;
    if (spec.role == Role::output) reference_.declare(spec.name, spec.type, spec.count);
    if (spec.role != Role::input) continue;
    make_again(set.job(i), inputs_[i]);
    if (!same_bytes(copies_[i], inputs_[i])) {
      return Verdict::refuse(fmt::format("changed its input '{}'", spec.name));
    }
  }
  reference_.set_peers([&](const std::string& name, int rank) -> const void* {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i].spec.name != name || buffers[i].spec.role != Role::input) continue;
      if (rank == set.rank()) return inputs_[i].data();
      HostArray<unsigned char>& made = peers_[{name, rank}];
      make_again(set.job(i, rank), made);
      return made.data();
    }
    return nullptr;
  });
  HostView view(set.knobs(), set, inputs_);
  const auto host_params = set.target().pair.bind(view);
  set.target().pair.reference(host_params, reference_);

  Verdict total;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const BufferSpec& spec = buffers[i].spec;
    if (spec.role != Role::output) continue;
    const auto expected = reference_.outputs().find(spec.name);
    check(expected != reference_.outputs().end(),
          "the reference says nothing about output '" + spec.name + "'");
    const Verdict verdict =
        compare_output(spec, {copies_[i].data(), copies_[i].size()}, expected->second);
    if (!verdict.ok) return verdict;
    // The output nearest to its own bound is the one to report.
    const auto closeness = [](const Verdict& v) { return v.bound > 0 ? v.max_error / v.bound : 0; };
    if (total.bound == 0 || closeness(verdict) > closeness(total)) {
      total.max_error = verdict.max_error;
      total.bound = verdict.bound;
    }
    total.recomputed_percent = std::min(total.recomputed_percent, verdict.recomputed_percent);
    total.seen_percent = std::min(total.seen_percent, verdict.seen_percent);
  }
  return total;
}

Verdict Verifier::run(BufferSet& set, const Side& side, std::size_t index, std::uint64_t seed) {
  if (side.enter) side.enter();
  // What `enter` started is over before there are inputs.
  set.backend().synchronize();
  set.renew(seed);
  set.place_pages();
  set.poison_outputs();
  set.backend().synchronize();
  set.backend().call(side.run);
  set.backend().synchronize();
  Verdict verdict = judge(set);
  if (side.leave) side.leave();
  const std::uint64_t hash = hash_outputs(set);
  const auto previous = previous_.find(index);
  if (previous != previous_.end()) {
    const bool unchanged = previous->second == hash;
    if (!verdict.ok && unchanged) {
      verdict.reason =
          "gave the same output when its inputs changed: an answer is kept between "
          "calls (" +
          verdict.reason + ")";
    } else if (!verdict.ok) {
      verdict.reason = "is right for the first inputs, not for fresh ones (" + verdict.reason + ")";
    } else if (unchanged) {
      verdict = Verdict::refuse(
          "has an output that does not depend on its inputs: two seeds give the same "
          "bytes, so the check proves nothing");
    }
  }
  previous_[index] = hash;
  return verdict;
}

}  // namespace gauntlet::lab::inline measure
