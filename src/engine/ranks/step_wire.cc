#include "engine/ranks/step_wire.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace gauntlet::engine::inline on_ranks {
namespace {

class Writer {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put(static_cast<std::uint64_t>(values.size()));
    if constexpr (std::is_trivially_copyable_v<T>) {
      const auto bytes = std::as_bytes(std::span(values));
      bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    } else {
      for (const T& value : values) put(value);
    }
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// After the first length that the bytes do not have, everything read is empty.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  void get(T& value) {
    if (bytes_.size() < sizeof(T)) return refuse();
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
  }
  template <class T>
  void get(std::vector<T>& values) {
    std::uint64_t count = 0;
    get(count);
    constexpr std::size_t kLeast = std::is_trivially_copyable_v<T> ? sizeof(T) : sizeof(count);
    if (count > bytes_.size() / kLeast) return refuse();
    values.resize(count);
    if constexpr (std::is_trivially_copyable_v<T>) {
      if (count > 0) std::memcpy(values.data(), bytes_.data(), count * sizeof(T));
      bytes_ = bytes_.subspan(count * sizeof(T));
    } else {
      for (T& value : values) get(value);
    }
  }
  bool is_whole() const { return !refused_ && bytes_.empty(); }

 private:
  void refuse() {
    refused_ = true;
    bytes_ = {};
  }

  std::span<const std::byte> bytes_;
  bool refused_ = false;
};

/// One list of fields for both directions.
template <class Step, class Each>
void each_field(Step& step, Each&& each) {
  each(step.tokens);
  each(step.items);
  each(step.table_stride);
  for (auto& table : step.tables) each(table);
  each(step.rows);
  each(step.masks);
  each(step.copies);
  each(step.experts_per_token);
  each(step.moves);
  each(step.ancestors);
}

template <class Result, class Each>
void each_result_field(Result& result, Each&& each) {
  each(result.token);
  each(result.log_probability);
  each(result.target_log_probability);
  each(result.logits);
  each(result.normed);
}

}  // namespace

std::vector<std::byte> to_bytes(const StepData& step) {
  Writer writer;
  each_field(step, [&](const auto& field) { writer.put(field); });
  return writer.take();
}

Expected<StepData> step_of(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  StepData step;
  each_field(step, [&](auto& field) { reader.get(field); });
  if (!reader.is_whole())
    return Error{"what came from rank 0 is no step: another program runs there"};
  return step;
}

std::vector<std::byte> to_bytes(const std::vector<RowResult>& results) {
  Writer writer;
  writer.put(static_cast<std::uint64_t>(results.size()));
  for (const RowResult& result : results) {
    each_result_field(result, [&](const auto& field) { writer.put(field); });
  }
  return writer.take();
}

Expected<std::vector<RowResult>> results_of(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  std::uint64_t count = 0;
  reader.get(count);
  std::vector<RowResult> results;
  if (count <= bytes.size()) results.resize(count);
  for (RowResult& result : results) {
    each_result_field(result, [&](auto& field) { reader.get(field); });
  }
  if (!reader.is_whole() || results.size() != count) {
    return Error{"what came from the last stage is no result: another program runs there"};
  }
  return results;
}

}  // namespace gauntlet::engine::inline on_ranks
