#include "lab/measure/compare_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include "core/check.h"
#include "core/os/threads.h"

namespace gauntlet::lab::inline measure {
namespace {

// Errors of many elements scatter around their expectation so little that an average beyond this
// many standard deviations means another arithmetic than the declared one.
constexpr double kMostAverage = 0.9;
constexpr std::int64_t kEnoughForAverage = 1000;
// As in Rounding::bound: once in 10^15.
constexpr double kSigmas = 8;

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
      if (bytes[i] != kPoison) return false;
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

/// What a parallel scan found: the first offending element, the one nearest to its bound, and the
/// errors over their expectation, squared and added up.
struct Scan {
  std::int64_t first_bad = -1;
  double closeness = 0;
  double error = 0;
  double bound = 0;
  double squares = 0;

  void merge(const Scan& other) {
    if (other.first_bad >= 0 && (first_bad < 0 || other.first_bad < first_bad)) {
      first_bad = other.first_bad;
    }
    if (other.closeness > closeness) {
      closeness = other.closeness;
      error = other.error;
      bound = other.bound;
    }
    squares += other.squares;
  }
};

template <class Body>
Scan scan(std::int64_t count, Body body, std::int64_t grain = 4096) {
  std::mutex mutex;
  Scan total;
  parallel_for(
      count,
      [&](std::int64_t begin, std::int64_t end) {
        Scan part;
        for (std::int64_t i = begin; i < end; ++i) body(i, part);
        const std::lock_guard lock(mutex);
        total.merge(part);
      },
      grain);
  return total;
}

std::string explain(const BufferSpec& output, const Elements& got, std::int64_t index,
                    const std::string& expected) {
  const std::string where = fmt::format("{}[{}]", output.name, index);
  if (got.poisoned(index)) {
    return fmt::format("left part of its output unwritten: {} was never stored", where);
  }
  const double value = got.value(index);
  if (std::isnan(value)) return fmt::format("returned NaN at {}", where);
  return fmt::format("gave a wrong result: {} is {:.9g}, expected {}", where, value, expected);
}

Verdict compare_exact(const BufferSpec& output, std::span<const unsigned char> bytes,
                      const ExpectedOutput& expected) {
  const Elements got(bytes, output.type);
  const std::size_t element = size_of(output.type);
  const Scan found = scan(output.count, [&](std::int64_t i, Scan& part) {
    const std::size_t at = static_cast<std::size_t>(i) * element;
    if (part.first_bad < 0 &&
        std::memcmp(bytes.data() + at, expected.bytes.data() + at, element) != 0) {
      part.first_bad = i;
    }
  });
  if (found.first_bad < 0) return {};
  const Elements want({expected.bytes.data(), expected.bytes.size()}, output.type);
  return Verdict::refuse(explain(output, got, found.first_bad,
                                 fmt::format("exactly {:.9g}", want.value(found.first_bad))));
}

/// Every element must have been written and be a number, also where only some rows are recomputed.
Verdict all_are_numbers(const BufferSpec& output, const Elements& got) {
  const Scan found = scan(output.count, [&](std::int64_t i, Scan& part) {
    if (part.first_bad < 0 && std::isnan(got.value(i))) part.first_bad = i;
  });
  if (found.first_bad < 0) return {};
  return Verdict::refuse(explain(output, got, found.first_bad, "a number"));
}

/// One element against its bound.
void weigh(std::int64_t index, double error, double bound, double size, double expected_square,
           Scan& part) {
  // A bound of zero allows no error at all, and one that is not a number nothing.
  if (!(error <= bound) && part.first_bad < 0) part.first_bad = index;
  const double closeness = bound > 0 ? error / bound : (error == 0 ? 0 : INFINITY);
  if (closeness > part.closeness || !(closeness == closeness)) {
    part.closeness = closeness;
    part.error = size > 0 ? error / size : error;
    part.bound = size > 0 ? bound / size : bound;
  }
  if (expected_square > 0) part.squares += error * error / expected_square;
}

/// Squared error that storing the result and functions of it may add.
double result_square(const Rounding& rounding, double squared_value) {
  const double u = (1 + 2 * rounding.ulps) * unit_roundoff(rounding.result);
  return u * u * squared_value;
}

Verdict too_coarse(const BufferSpec& output, double average) {
  return Verdict::refuse(
      fmt::format("is less precise than it claims: the errors of '{}' are on average {:.1f} times "
                  "what its types and the length of its sums lead to",
                  output.name, average));
}

Verdict compare_elements(const BufferSpec& output, const Elements& got,
                         const ExpectedOutput& expected) {
  const Rounding& rounding = expected.rounding;
  const bool all = expected.rows.empty();
  const double root_length = std::sqrt(static_cast<double>(rounding.length));
  const auto index_of = [&](std::int64_t k) {
    if (all) return k;
    const std::int64_t row = expected.rows[static_cast<std::size_t>(k / expected.row_length)];
    return row * expected.row_length + k % expected.row_length;
  };
  const auto count = static_cast<std::int64_t>(expected.values.size());
  const Scan found = scan(count, [&](std::int64_t k, Scan& part) {
    const auto at = static_cast<std::size_t>(k);
    const double want = expected.values[at];
    const double norm = expected.norms.empty() ? std::abs(want) / root_length : expected.norms[at];
    const double square =
        rounding.variance(norm * norm, want * want) + result_square(rounding, want * want);
    weigh(k, std::abs(got.value(index_of(k)) - want), rounding.bound(norm, want),
          std::max(norm, std::abs(want)), square, part);
  });
  if (found.first_bad >= 0) {
    const auto at = static_cast<std::size_t>(found.first_bad);
    const double want = expected.values[at];
    const double norm = expected.norms.empty() ? std::abs(want) / root_length : expected.norms[at];
    return Verdict::refuse(
        explain(output, got, index_of(found.first_bad),
                fmt::format("{:.9g} ± {:.2g}", want, rounding.bound(norm, want))));
  }
  const double average =
      std::sqrt(found.squares / static_cast<double>(std::max<std::int64_t>(count, 1)));
  if (count >= kEnoughForAverage && average > kMostAverage) return too_coarse(output, average);
  const double recomputed = 100.0 * static_cast<double>(count) / static_cast<double>(output.count);
  return {.max_error = found.error,
          .bound = found.bound,
          .recomputed_percent = recomputed,
          .seen_percent = recomputed};
}

/// Weighted sums over whole rows see every element of an output that is too large to recompute.
Verdict compare_row_sums(const BufferSpec& output, const Elements& got,
                         const ExpectedOutput& expected) {
  const Rounding& rounding = expected.rounding;
  const std::int64_t length = expected.row_length;
  const auto rows = static_cast<std::int64_t>(expected.sums.size());
  const Scan found = scan(
      rows,
      [&](std::int64_t row, Scan& part) {
        double sum = 0, squared_values = 0;
        for (std::int64_t j = 0; j < length; ++j) {
          const double weighted =
              expected.weights[static_cast<std::size_t>(j)] * got.value(row * length + j);
          sum += weighted;
          squared_values += weighted * weighted;
        }
        const auto at = static_cast<std::size_t>(row);
        // No sum is larger than its terms allow: what is must not widen its own bound.
        squared_values =
            std::min(squared_values, static_cast<double>(rounding.length) * expected.squares[at]);
        const double square = rounding.variance(expected.squares[at], squared_values) +
                              result_square(rounding, squared_values);
        weigh(row, std::abs(sum - expected.sums[at]), kSigmas * std::sqrt(square),
              std::sqrt(std::max(expected.squares[at], squared_values)), square, part);
      },
      16);
  if (found.first_bad >= 0) {
    return Verdict::refuse(fmt::format(
        "gave a wrong result: row {} of '{}' does not add up to what it must (off by {:.2g} of its "
        "size, {:.2g} allowed)",
        found.first_bad, output.name, found.error, found.bound));
  }
  const double average = std::sqrt(found.squares / static_cast<double>(rows));
  if (rows >= kEnoughForAverage && average > kMostAverage) return too_coarse(output, average);
  return {.max_error = found.error, .bound = found.bound};
}

}  // namespace

Verdict compare_output(const BufferSpec& output, std::span<const unsigned char> bytes,
                       const ExpectedOutput& expected) {
  if (expected.compare == ExpectedOutput::Compare::exact) {
    return compare_exact(output, bytes, expected);
  }
  const Elements got(bytes, output.type);
  if (Verdict numbers = all_are_numbers(output, got); !numbers.ok) return numbers;
  Verdict verdict = compare_elements(output, got, expected);
  if (!verdict.ok || expected.rows.empty()) return verdict;
  check(expected.has_row_sums, "the reference recomputes only some rows of '" + output.name +
                                   "' and says nothing of the others: give row_sums(), too");
  const Verdict sums = compare_row_sums(output, got, expected);
  if (!sums.ok) return sums;
  verdict.seen_percent = 100;
  return verdict;
}

}  // namespace gauntlet::lab::inline measure
