// Binder: how a pair declares its buffers. The same bind() runs for the CPU, for a GPU and for the
// host view that the reference reads; the binder decides where the memory is.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/dtype.h"
#include "core/random.h"
#include "lab/author/knobs.h"

namespace gauntlet::lab::inline author {

/// How one input's values are made: element i of a buffer depends on the seed and i alone, so that
/// any part of it can be made anew, by any thread, and on the device. `whole` is the exception.
struct Fill {
  /// What a device can do by itself; `custom` is computed on the host and copied.
  enum class Rule {
    zeros,
    uniform,
    integers,
    whole_floats,
    whole_bf16,
    whole_f8e4m3,
    permutation,
    layouts,
    bytes,
    custom
  };
  Rule rule = Rule::zeros;
  float low = 0, high = 0;               // uniform, layouts
  std::int64_t first = 0, bound = 0;     // integers, whole numbers; permutation: of `bound`
  std::int64_t fields = 0, records = 0;  // layouts
  std::int64_t row = 0, kinds = 0;       // whole_bf16: elements of a row, different rows; 0: all
  /// custom: (destination of element `begin`, begin, end, random source of this buffer and seed)
  std::function<void(void* out, std::int64_t begin, std::int64_t end, const Random& random)> make =
      {};
  bool whole = false;  // custom: makes all of the buffer at once
  /// Parts of two seeds side by side are as good an input as one of a single seed. False where
  /// elements belong together (a permutation, the same data in two layouts).
  bool mixes = true;

  static Fill uniform(float low = -1.0f, float high = 1.0f);   // f32
  static Fill integers(std::int64_t low, std::int64_t bound);  // i32, in [low, bound)
  /// Whole numbers as f32, in [low, bound): sums of them are exact in any order.
  static Fill whole_floats(std::int64_t low, std::int64_t bound);
  /// The same as bf16 or e4m3, which hold all whole numbers up to 256 and 16.
  static Fill whole_bf16(std::int64_t low, std::int64_t bound);
  static Fill whole_f8e4m3(std::int64_t low, std::int64_t bound);
  /// Rows of which only `kinds` are different, in an order that does not depend on the seed
  /// (row_kind()): what is computed of each row and would be too much for a reference is then
  /// computed of each kind.
  static Fill whole_bf16_rows(std::int64_t low, std::int64_t bound, std::int64_t row,
                              std::int64_t kinds);
  static Fill permutation(std::int64_t size);  // i32: 0 to size - 1 in a random order, over again
  /// f32: records of `fields` uniform values as structs, and after them the same field by field.
  static Fill both_layouts(float low, float high, std::int64_t fields, std::int64_t records);
  static Fill bytes();  // any type, random bits
  static Fill constant_zero();
  /// Any range of elements, which must not mix unless told: f(out, begin, end, random).
  template <class F>
  static Fill ranges(F f) {
    return {.rule = Rule::custom, .make = std::move(f), .mixes = false};
  }
  /// All of a buffer at once, for structures such as permutations: f(span, random).
  template <class T, class F>
  static Fill custom(F f) {
    return {.rule = Rule::custom,
            .make =
                [f](void* out, std::int64_t begin, std::int64_t end, const Random& random) {
                  f(std::span<T>(static_cast<T*>(out), static_cast<std::size_t>(end - begin)),
                    random);
                },
            .whole = true,
            .mixes = false};
  }

  /// Writes elements [begin, end) of an element size, on the host.
  void write(void* out, std::int64_t begin, std::int64_t end, std::size_t element_bytes,
             const Random& random) const;
};

enum class Memory {
  device,   // the backend's own: host memory on the CPU, cudaMalloc on a GPU
  managed,  // cudaMallocManaged; host memory on the CPU
  pinned,   // page-locked host memory; host memory on the CPU
};

enum class Role { input, output, scratch };

struct BufferSpec {
  std::string name;
  Role role = Role::input;
  DType type = DType::f32;
  std::int64_t count = 0;
  Fill fill = {};
  Memory memory = Memory::device;
};

class Binder {
 public:
  explicit Binder(const Knobs& knobs, int rank = 0, int num_ranks = 1)
      : knobs_(knobs), rank_(rank), num_ranks_(num_ranks) {}
  virtual ~Binder() = default;

  /// Of a side that runs as several ranks: which of them these buffers are for.
  int rank() const { return rank_; }
  int num_ranks() const { return num_ranks_; }

  std::int64_t knob(const std::string& name) const { return knobs_[name]; }
  const Knobs& knobs() const { return knobs_; }

  template <class T>
  const T* input(const std::string& name, std::int64_t count, Fill fill,
                 Memory memory = Memory::device) {
    return static_cast<const T*>(
        add({name, Role::input, dtype_of<T>(), count, std::move(fill), memory}));
  }
  template <class T>
  T* output(const std::string& name, std::int64_t count, Memory memory = Memory::device) {
    return static_cast<T*>(add({name, Role::output, dtype_of<T>(), count, {}, memory}));
  }
  /// Working memory whose content nobody checks. Not zeroed.
  template <class T>
  T* scratch(const std::string& name, std::int64_t count, Memory memory = Memory::device) {
    return static_cast<T*>(add({name, Role::scratch, dtype_of<T>(), count, {}, memory}));
  }

 protected:
  virtual void* add(BufferSpec spec) = 0;

 private:
  const Knobs& knobs_;
  int rank_;
  int num_ranks_;
};

}  // namespace gauntlet::lab::inline author
