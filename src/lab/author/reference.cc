#include "lab/author/reference.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/os/threads.h"

namespace gauntlet::lab::inline author {
namespace {

// An error of eight standard deviations happens once in 10^15 elements.
constexpr double kSigmas = 8;

// Kept memory holds what the last inputs left there; references may add up from zero.
template <class T>
std::span<T> zeroed(HostArray<T>& array, std::size_t count) {
  array.resize(count);
  parallel_for(static_cast<std::int64_t>(count), [&](std::int64_t begin, std::int64_t end) {
    std::fill(array.data() + begin, array.data() + end, T{});
  });
  return array;
}

}  // namespace

double Rounding::variance(double squared_norm, double squared_value) const {
  const auto square = [](double x) { return x * x; };
  // Operands of float32 or wider are taken as they are.
  const bool exact_operands = operands == DType::f32 || operands == DType::f64;
  const double u_operands = exact_operands ? 0 : unit_roundoff(operands);
  const double u_sum = unit_roundoff(accumulate);
  const auto n = static_cast<double>(length);
  return square(u_operands) * (2.0 / 3 * squared_norm + 4 * squared_value) +
         square(u_sum) / 3 * (n / 2 * squared_norm + n / 3 * squared_value);
}

double Rounding::bound(double norm, double value) const {
  return kSigmas * std::sqrt(variance(norm * norm, value * value)) +
         (1 + 2 * ulps) * unit_roundoff(result) * std::abs(value);
}

void Reference::declare(const std::string& name, DType type, std::int64_t count) {
  declared_[name] = {type, count};
}

const Reference::Declared& Reference::declared(const std::string& name) const {
  const auto found = declared_.find(name);
  check(found != declared_.end(), "the reference names an output the pair does not have: " + name);
  return found->second;
}

const void* Reference::peer_bytes(const std::string& name, int rank) const {
  const void* bytes = peers_ ? peers_(name, rank) : nullptr;
  check(bytes != nullptr, "the reference names an input the pair does not have: " + name);
  return bytes;
}

std::span<unsigned char> Reference::exact_bytes(const std::string& name,
                                                std::size_t element_bytes) {
  const Declared& output = declared(name);
  check(size_of(output.type) == element_bytes, "exact() of another element size: " + name);
  ExpectedOutput& expected = outputs_[name];
  expected.compare = ExpectedOutput::Compare::exact;
  return zeroed(expected.bytes, static_cast<std::size_t>(output.count) * element_bytes);
}

std::span<double> Reference::values(const std::string& name, Rounding rounding) {
  ExpectedOutput& expected = outputs_[name];
  expected.rounding = rounding;
  return zeroed(expected.values, static_cast<std::size_t>(declared(name).count));
}

std::span<double> Reference::norms(const std::string& name) {
  ExpectedOutput& expected = outputs_[name];
  check(!expected.values.empty(), "norms() before values() or rows(): " + name);
  return zeroed(expected.norms, expected.values.size());
}

std::span<double> Reference::rows(const std::string& name, std::int64_t row_length,
                                  std::vector<std::int64_t> rows, Rounding rounding) {
  const std::int64_t count = declared(name).count;
  check(row_length > 0 && count % row_length == 0,
        "rows() with a length that does not divide: " + name);
  check(!rows.empty(), "rows() without a row compares nothing: " + name);
  for (std::int64_t row : rows) {
    check(row >= 0 && row < count / row_length,
          "rows() names a row outside of the output: " + name);
  }
  ExpectedOutput& expected = outputs_[name];
  expected.rounding = rounding;
  expected.row_length = row_length;
  expected.rows = std::move(rows);
  return zeroed(expected.values, expected.rows.size() * static_cast<std::size_t>(row_length));
}

RowSums Reference::row_sums(const std::string& name) {
  ExpectedOutput& expected = outputs_[name];
  check(!expected.rows.empty(), "row_sums() before rows(): " + name);
  const auto num_rows = static_cast<std::size_t>(declared(name).count / expected.row_length);
  expected.has_row_sums = true;
  const auto weights = zeroed(expected.weights, static_cast<std::size_t>(expected.row_length));
  // Of either sign, and far enough from zero that no element is lost among the others.
  for (double& weight : weights) {
    const double size = 0.5 + 0.5 * static_cast<double>(random_.next_below(1 << 20)) / (1 << 20);
    weight = random_.next_below(2) == 0 ? size : -size;
  }
  return {weights, zeroed(expected.sums, num_rows), zeroed(expected.squares, num_rows)};
}

std::vector<std::int64_t> Reference::stratified(std::int64_t count, std::int64_t stride) {
  check(stride > 0, "stratified() with a stride of nothing");
  std::vector<std::int64_t> chosen;
  for (std::int64_t begin = 0; begin < count; begin += stride) {
    const std::int64_t height = std::min(stride, count - begin);
    chosen.push_back(
        begin + static_cast<std::int64_t>(random_.next_below(static_cast<std::uint64_t>(height))));
  }
  return chosen;
}

}  // namespace gauntlet::lab::inline author
