// How fast weights get into the fragment order, out of MXFP4 and into rows, or are made up on the
// GPU: what loading a model spends there.
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "bench/cuda/speed.h"
#include "core/random.h"
#include "kernels/cuda/product/pack.h"
#include "kernels/ref/ops.h"

namespace {

using namespace gauntlet;
using namespace gauntlet::bench;
using namespace gauntlet::kernels::cuda;

constexpr std::int64_t kRows = 5760;
constexpr std::int64_t kCols = kHidden;
constexpr std::int64_t kElements = kRows * kCols;
constexpr int kPackLaunches = 16;
constexpr std::uint64_t kKey = 17;
constexpr RandomScales kScales = {.lower = 120, .upper_of_256 = 128};

std::vector<std::uint8_t> random_bytes(std::int64_t count, std::uint64_t lowest,
                                       std::uint64_t below) {
  const Random random(4);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(lowest + random.below(below, i));
  }
  return bytes;
}

/// One matrix of an expert's size in both formats, as a file holds it; `out` has room for either.
class PackCase {
 public:
  PackCase()
      : copies_(rotation(kElements)),
        halves_(random_bf16(kElements, 1)),
        nibbles_(random_bytes(kElements / 2, 0, 256)),
        scales_(random_bytes(kElements / 32, 118, 9)),
        device_halves_(copies_, halves_),
        device_nibbles_(copies_, nibbles_),
        device_scales_(copies_, scales_),
        out_(copies_, fragments(WeightFormat::bf16).bytes()),
        out_scales_(copies_, kElements / 32) {}

  enum class Source { file, random };

  Pack work(int i, WeightFormat from, WeightFormat to, Source source) const {
    Pack pack{.source_format = from,
              .cols = kCols,
              .random_step = 0x1p-15f,
              .random_scales = kScales,
              .target = fragments(to),
              .out = out_.at(i)};
    pack.target.data = pack.out;
    pack.sources[0] = {.rows = kRows, .random_key = kKey};
    if (source == Source::file && from == WeightFormat::bf16) {
      pack.sources[0].data = device_halves_.at(i);
    } else if (source == Source::file) {
      pack.sources[0].data = device_nibbles_.at(i);
      pack.sources[0].scales = device_scales_.at(i);
    }
    return pack;
  }
  std::uint8_t* out_scales(int i) const { return out_scales_.at(i); }
  static FragmentMatrix fragments(WeightFormat format) {
    return {.format = format, .rows = kRows, .cols = kCols};
  }

  double element(WeightFormat from, std::int64_t row, std::int64_t col) const {
    const auto at = static_cast<std::size_t>(row * kCols + col);
    if (from == WeightFormat::bf16) return bf16_float(halves_[at]);
    return kernels::ref::fp4_value(nibble(at)) * kernels::ref::e8m0_value(scales_[at / 32]);
  }
  void verify_bf16_fragments(WeightFormat from) const {
    const auto got = out_.first();
    each_spot([&](std::int64_t row, std::int64_t col) {
      const auto at = static_cast<std::size_t>(
          bf16_offset(fragment_place(row, col, fragments(WeightFormat::bf16).col_blocks())));
      expect_near("pack: a bf16 element", half_at(got, at), element(from, row, col), 0);
    });
  }
  void verify_mxfp4_fragments() const {
    const auto got = out_.first();
    each_spot([&](std::int64_t row, std::int64_t col) {
      const FragmentPlace place =
          fragment_place(row, col, fragments(WeightFormat::mxfp4).col_blocks());
      const auto index = static_cast<std::size_t>(row * kCols + col);
      std::uint32_t word = 0;
      for (std::size_t byte = 0; byte < 4; ++byte) {
        word |= std::uint32_t{got[static_cast<std::size_t>(mxfp4_word_offset(place)) + byte]}
                << (8 * byte);
      }
      const auto wanted = static_cast<std::uint32_t>(nibble(index));
      check((word & spread_fp4(15, place.reg, place.half)) ==
                spread_fp4(wanted, place.reg, place.half),
            "pack: an MXFP4 element is wrong");
      expect_near("pack: an MXFP4 scale", got[static_cast<std::size_t>(mxfp4_scale_offset(place))],
                  scales_[index / 32] + kMxfp4ScaleBias, 0);
    });
  }
  void verify_bf16_rows(WeightFormat from) const {
    const auto got = out_.first();
    each_spot([&](std::int64_t row, std::int64_t col) {
      expect_near("unpack: a bf16 element",
                  half_at(got, static_cast<std::size_t>(2 * (row * kCols + col))),
                  element(from, row, col), 0);
    });
  }
  /// The numbers of a key are those of random.h, which the tests of the kernel spell out; here it
  /// is enough that every element is in its range and that they differ.
  void verify_random_bf16() const {
    const auto got = out_.first();
    double squares = 0;
    for (std::size_t i = 0; i < 4096; ++i) {
      const double value = half_at(got, 2 * i);
      check(std::abs(value) <= 1, "pack: a random element is out of range");
      squares += value * value;
    }
    expect_near("pack: the mean square of random elements", squares / 4096, 1.0 / 3, 0.05);
  }

 private:
  int nibble(std::size_t index) const { return nibbles_[index / 2] >> (4 * (index % 2)) & 15; }
  static double half_at(const std::vector<std::uint8_t>& bytes, std::size_t at) {
    return bf16_float(static_cast<std::uint16_t>(bytes[at] | bytes[at + 1] << 8));
  }
  template <class Look>
  static void each_spot(Look look) {
    for (const std::int64_t row : spots(kRows)) {
      for (const std::int64_t col : spots(kCols)) look(row, col);
    }
  }

  int copies_;
  std::vector<std::uint16_t> halves_;
  std::vector<std::uint8_t> nibbles_, scales_;
  PerLaunch<std::uint16_t> device_halves_;
  PerLaunch<std::uint8_t> device_nibbles_, device_scales_, out_, out_scales_;
};

double file_bytes(WeightFormat format) {
  return static_cast<double>(format == WeightFormat::bf16 ? kElements * 2
                                                          : kElements / 2 + kElements / 32);
}

const char* text_of(WeightFormat format) { return format == WeightFormat::bf16 ? "bf16" : "mxfp4"; }

Kernel kernel_of(const char* name, const std::string& from, const std::string& to, double bytes) {
  return {.name = name,
          .shape = fmt::format("{} x {} {} to {}", kRows, kCols, from, to),
          .bytes = bytes,
          .launches = kPackLaunches};
}

void time_pack(const Bench& bench, const PackCase& made, WeightFormat from, WeightFormat to) {
  Kernel kernel =
      kernel_of("pack", text_of(from), text_of(to),
                file_bytes(from) + static_cast<double>(PackCase::fragments(to).bytes()));
  kernel.launch = [&, from, to](int i, const Launch& how) {
    pack(made.work(i, from, to, PackCase::Source::file), how);
  };
  kernel.verify = [&, from, to] {
    if (to == WeightFormat::bf16) {
      made.verify_bf16_fragments(from);
    } else {
      made.verify_mxfp4_fragments();
    }
  };
  bench.report(kernel);
}

void time_unpack(const Bench& bench, const PackCase& made, WeightFormat from) {
  const auto bf16 = WeightFormat::bf16;
  Kernel kernel =
      kernel_of("unpack", text_of(from), "bf16 rows", file_bytes(from) + file_bytes(bf16));
  kernel.launch = [&, from](int i, const Launch& how) {
    unpack(made.work(i, from, WeightFormat::bf16, PackCase::Source::file), made.out_scales(i), how);
  };
  kernel.verify = [&, from] { made.verify_bf16_rows(from); };
  bench.report(kernel);
}

void time_random(const Bench& bench, const PackCase& made) {
  const auto bf16 = WeightFormat::bf16;
  Kernel kernel =
      kernel_of("pack", "random", "bf16", static_cast<double>(PackCase::fragments(bf16).bytes()));
  kernel.launch = [&](int i, const Launch& how) {
    pack(made.work(i, WeightFormat::bf16, WeightFormat::bf16, PackCase::Source::random), how);
  };
  kernel.verify = [&] { made.verify_random_bf16(); };
  bench.report(kernel);
}

void run(const Bench& bench) {
  const PackCase made;
  const auto bf16 = WeightFormat::bf16, mxfp4 = WeightFormat::mxfp4;
  time_pack(bench, made, bf16, bf16);
  time_pack(bench, made, mxfp4, mxfp4);
  time_pack(bench, made, mxfp4, bf16);
  time_unpack(bench, made, mxfp4);
  time_unpack(bench, made, bf16);
  time_random(bench, made);
}

}  // namespace

int main() { return gauntlet::bench::run_on_gpu(run); }
