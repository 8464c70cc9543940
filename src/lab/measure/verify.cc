#include "lab/measure/verify.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>

#include "core/check.h"
#include "core/threads.h"

namespace gauntlet::lab::inline measure {
namespace {

using Buffer = BufferSet::Buffer;

Verdict refuse(std::string reason) { return {.ok = false, .reason = std::move(reason)}; }

bool guard_intact(const BufferSet& set, const unsigned char* zone) {
  std::vector<unsigned char> bytes(BufferSet::kGuardBytes);
  set.backend().download(bytes.data(), zone, bytes.size());
  for (unsigned char byte : bytes) {
    if (byte != BufferSet::kGuardByte) return false;
  }
  return true;
}

/// Output elements as numbers.
class Elements {
 public:
  Elements(std::span<const unsigned char> bytes, DType type) : bytes_(bytes), type_(type) {}

  double value(std::int64_t index) const {
    switch (type_) {
      case DType::f64:
        return read<double>(index);
      case DType::f32:
      case DType::tf32:
        return static_cast<double>(read<float>(index));
      case DType::bf16: {
        const auto bits = static_cast<std::uint32_t>(read<std::uint16_t>(index)) << 16;
        float value;
        std::memcpy(&value, &bits, 4);
        return static_cast<double>(value);
      }
      case DType::i64:
        return static_cast<double>(read<std::int64_t>(index));
      case DType::u64:
        return static_cast<double>(read<std::uint64_t>(index));
      case DType::i32:
        return read<std::int32_t>(index);
      case DType::u32:
        return read<std::uint32_t>(index);
      case DType::i16:
        return read<std::int16_t>(index);
      case DType::u16:
        return read<std::uint16_t>(index);
      case DType::i8:
        return read<std::int8_t>(index);
      case DType::u8:
        return read<std::uint8_t>(index);
      default:
        fail("outputs of this type cannot be compared yet");
    }
  }
  bool poisoned(std::int64_t index) const {
    const std::size_t element = size_of(type_);
    const unsigned char* bytes = bytes_.data() + static_cast<std::size_t>(index) * element;
    for (std::size_t i = 0; i < element; ++i) {
      if (bytes[i] != BufferSet::kPoisonByte) return false;
    }
    return true;
  }

 private:
  template <class T>
  T read(std::int64_t index) const {
    T value;
    std::memcpy(&value, bytes_.data() + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
    return value;
  }

  std::span<const unsigned char> bytes_;
  DType type_;
};

/// The first offending element of a parallel scan, and the largest error seen.
struct Scan {
  std::mutex mutex;
  std::int64_t first_bad = -1;
  double max_error = 0;
  double bound_there = 0;

  void merge(std::int64_t bad, double error) {
    const std::lock_guard lock(mutex);
    if (bad >= 0 && (first_bad < 0 || bad < first_bad)) first_bad = bad;
    max_error = std::max(max_error, error);
  }
};

std::string explain(const Buffer& buffer, const Elements& got, std::int64_t index,
                    const std::string& expected) {
  const std::string where = fmt::format("{}[{}]", buffer.spec.name, index);
  if (got.poisoned(index)) {
    return fmt::format("left part of its output unwritten: {} was never stored", where);
  }
  const double value = got.value(index);
  if (std::isnan(value)) return fmt::format("returned NaN at {}", where);
  return fmt::format("gave a wrong result: {} is {:.9g}, expected {}", where, value, expected);
}

Verdict compare_exact(const Buffer& buffer, std::span<const unsigned char> bytes,
                      const ExpectedOutput& expected) {
  const Elements got(bytes, buffer.spec.type);
  const std::size_t element = size_of(buffer.spec.type);
  Scan scan;
  parallel_for(buffer.spec.count, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t bad = -1;
    for (std::int64_t i = begin; i < end && bad < 0; ++i) {
      const std::size_t at = static_cast<std::size_t>(i) * element;
      if (std::memcmp(bytes.data() + at, expected.bytes.data() + at, element) != 0) bad = i;
    }
    scan.merge(bad, 0);
  });
  if (scan.first_bad < 0) return {};
  const Elements want({expected.bytes.data(), expected.bytes.size()}, buffer.spec.type);
  return refuse(explain(buffer, got, scan.first_bad,
                        fmt::format("exactly {:.9g}", want.value(scan.first_bad))));
}

Verdict compare_rounded(const Buffer& buffer, std::span<const unsigned char> bytes,
                        const ExpectedOutput& expected) {
  const Elements got(bytes, buffer.spec.type);
  const double allowed = expected.rounding.bound();
  const bool all = expected.rows.empty();
  Scan scan;
  // Every element must have been written and be a number, also where only some rows are recomputed.
  parallel_for(buffer.spec.count, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t bad = -1;
    for (std::int64_t i = begin; i < end && bad < 0; ++i) {
      if (std::isnan(got.value(i))) bad = i;
    }
    scan.merge(bad, 0);
  });
  if (scan.first_bad >= 0) return refuse(explain(buffer, got, scan.first_bad, "a number"));

  const auto index_of = [&](std::int64_t k) {
    return all ? k
               : expected.rows[static_cast<std::size_t>(k / expected.row_length)] *
                         expected.row_length +
                     k % expected.row_length;
  };
  const auto count = static_cast<std::int64_t>(expected.values.size());
  parallel_for(count, [&](std::int64_t begin, std::int64_t end) {
    double worst = 0;
    std::int64_t bad = -1;
    for (std::int64_t k = begin; k < end; ++k) {
      const auto at = static_cast<std::size_t>(k);
      const double want = expected.values[at];
      const double magnitude =
          expected.magnitudes.empty() ? std::abs(want) : expected.magnitudes[at];
      const double error = std::abs(got.value(index_of(k)) - want);
      // A magnitude of zero allows no error at all, and one that is not a number nothing.
      const double relative = magnitude > 0 ? error / magnitude : (error == 0 ? 0 : INFINITY);
      worst = std::max(worst, relative);
      if (!(relative <= allowed) && bad < 0) bad = k;
    }
    scan.merge(bad, worst);
  });
  if (scan.first_bad >= 0) {
    const std::int64_t k = scan.first_bad;
    Verdict verdict = refuse(explain(
        buffer, got, index_of(k),
        fmt::format("{:.9g} within {:.2e} of its magnitude (largest error {:.2e})",
                    expected.values[static_cast<std::size_t>(k)], allowed, scan.max_error)));
    verdict.max_error = scan.max_error;
    verdict.bound = allowed;
    return verdict;
  }
  return {.max_error = scan.max_error,
          .bound = allowed,
          .checked_percent =
              100.0 * static_cast<double>(count) / static_cast<double>(buffer.spec.count)};
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

bool same_bytes(std::span<const unsigned char> a, const HostArray<unsigned char>& b) {
  if (a.size() != b.size()) return false;
  std::atomic<bool> same{true};
  parallel_for(static_cast<std::int64_t>(a.size()), [&](std::int64_t begin, std::int64_t end) {
    const auto count = static_cast<std::size_t>(end - begin);
    if (std::memcmp(a.data() + begin, b.data() + begin, count) != 0) same = false;
  });
  return same;
}

}  // namespace

std::span<const unsigned char> Verifier::read_back(const BufferSet& set, std::size_t index) {
  const Buffer& buffer = set.buffers()[index];
  scratch_.resize(buffer.bytes);
  set.backend().download(scratch_.data(), buffer.data, buffer.bytes);
  return {scratch_.data(), buffer.bytes};
}

std::uint64_t Verifier::hash_outputs(const BufferSet& set) {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < set.buffers().size(); ++i) {
    if (set.buffers()[i].spec.role != Role::output) continue;
    hash = mix64(hash ^ hash_bytes(read_back(set, i)));
  }
  return hash;
}

Verdict Verifier::judge(const BufferSet& set) {
  Verdict total;
  const auto& buffers = set.buffers();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    if (!guard_intact(set, buffer.base)) {
      return refuse(
          fmt::format("wrote outside of its buffers: before the start of '{}'", buffer.spec.name));
    }
    if (!guard_intact(set, buffer.data + buffer.bytes)) {
      return refuse(
          fmt::format("wrote outside of its buffers: past the end of '{}'", buffer.spec.name));
    }
    if (buffer.spec.role == Role::input && !same_bytes(read_back(set, i), buffer.host)) {
      return refuse(fmt::format("changed its input '{}'", buffer.spec.name));
    }
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    if (buffer.spec.role != Role::output) continue;
    const auto expected = set.reference().outputs().find(buffer.spec.name);
    check(expected != set.reference().outputs().end(),
          "the reference says nothing about output '" + buffer.spec.name + "'");
    const auto bytes = read_back(set, i);
    const Verdict verdict = expected->second.compare == ExpectedOutput::Compare::exact
                                ? compare_exact(buffer, bytes, expected->second)
                                : compare_rounded(buffer, bytes, expected->second);
    if (!verdict.ok) return verdict;
    // The output nearest to its own bound is the one to report.
    const auto closeness = [](const Verdict& v) { return v.bound > 0 ? v.max_error / v.bound : 0; };
    if (total.bound == 0 || closeness(verdict) > closeness(total)) {
      total.max_error = verdict.max_error;
      total.bound = verdict.bound;
    }
    total.checked_percent = std::min(total.checked_percent, verdict.checked_percent);
  }
  return total;
}

Verdict Verifier::run(BufferSet& set, const Side& side, SideIndex index) {
  set.poison_outputs();
  set.reset();
  if (side.enter) side.enter();
  side.run();
  set.backend().synchronize();
  if (side.leave) side.leave();
  Verdict verdict = judge(set);
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
      verdict = refuse(
          "has an output that does not depend on its inputs: two seeds give the same "
          "bytes, so the check proves nothing");
    }
  }
  previous_[index] = hash;
  return verdict;
}

}  // namespace gauntlet::lab::inline measure
