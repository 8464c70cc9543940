// Products whose operands descriptors name and whose sums lie in tensor memory.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "tests/emulated/cluster.h"

namespace gauntlet::emulated {
namespace {

constexpr int kProductBytes = 32;  // of a row of an operand in one product
constexpr std::uint32_t kOffset = 0xFFFFFF;

constexpr std::uint32_t field(std::uint64_t bits, int first, int end) {
  return static_cast<std::uint32_t>(bits >> first & ((std::uint64_t{1} << (end - first)) - 1));
}

bool overlap(int first, int count, int other, int other_count) {
  return first < other + other_count && other < first + count;
}

/// Shared memory that `rows` rows of an operand are within.
std::uint32_t end_of(std::uint64_t descriptor, int rows) {
  const std::uint32_t stride = field(descriptor, 32, 46) << 4;
  return (field(descriptor, 0, 14) << 4 & ~1023u) +
         static_cast<std::uint32_t>((rows - 1) / 8) * stride + 1024;
}

}  // namespace

void Cluster::check_fresh(const char* what) {
  if (self().stale) schedule_.fault(fmt::format("no fence between a barrier and {}", what));
}

void Cluster::fence_before_sync() { self().unfenced = false; }

void Cluster::fence_after_sync() { self().stale = false; }

void Cluster::check_allocated(const Block& block, Columns columns) {
  const bool inside = std::ranges::any_of(block.allocated, [&](const Columns& own) {
    return columns.first >= own.first && columns.first + columns.count <= own.first + own.count;
  });
  if (!inside) schedule_.fault("columns of tensor memory that are not the block's");
}

void Cluster::allocate(int sms, std::uint32_t* address, std::uint32_t columns) {
  if (!std::has_single_bit(columns) || columns < 32 || columns > kTensorColumns) {
    schedule_.fault(fmt::format("{} columns of tensor memory", columns));
  }
  if (sms != shape_.blocks) schedule_.fault("tensor memory of one block in a pair, or of a pair");
  meet(own().warps[static_cast<std::size_t>(self().index / kLanes)], kLanes,
       fmt::format("allocate {}", columns), [&] {
         Block& block = own();
         if (!block.allocated.empty()) schedule_.fault("a second allocation");
         const int count = static_cast<int>(columns);
         int first = (kTensorColumns - count) / 64 * 32;  // anywhere: in the middle
         for (const Block& other : blocks_) {
           if (!other.allocated.empty()) first = other.allocated.front().first;
         }
         block.allocated.push_back({first, count});
         *address = static_cast<std::uint32_t>(first);
       });
  self().unfenced = true;
}

void Cluster::release(int sms, std::uint32_t address, std::uint32_t columns) {
  if (sms != shape_.blocks) schedule_.fault("tensor memory of one block in a pair, or of a pair");
  meet(own().warps[static_cast<std::size_t>(self().index / kLanes)], kLanes,
       fmt::format("release {}", columns), [&] {
         Block& block = own();
         if (block.allocated.size() != 1 ||
             block.allocated.front().first != static_cast<int>(address) ||
             block.allocated.front().count != static_cast<int>(columns)) {
           schedule_.fault("other columns are given back than were allocated");
         }
         for (const auto& products : products_) {
           if (!products.empty()) schedule_.fault("columns of running products are given back");
         }
         block.allocated.clear();
       });
}

void Cluster::start_product(const ProductArgs& args) {
  check_fresh("a product");
  const bool tf32 = args.kind == OperandKind::tf32;
  const std::uint32_t type = tf32 ? 2 : 1, what = args.what;
  const auto m = static_cast<int>(field(what, 24, 29) * 16);
  const auto n = static_cast<int>(field(what, 17, 23) * 8);
  const std::uint32_t zero = field(what, 0, 4) | field(what, 6, 7) | field(what, 13, 17) |
                             field(what, 23, 24) | field(what, 29, 32);
  if (field(what, 4, 6) != 1 || field(what, 7, 10) != type || field(what, 10, 13) != type ||
      zero != 0) {
    schedule_.fault("not a product of the kind that its instruction names");
  }
  if (m != kTensorLanes * args.sms || n < 16 || n > 256 || n % 16 != 0) {
    schedule_.fault(fmt::format("a product of {} by {} of {} SMs", m, n, args.sms));
  }
  if (args.sms != shape_.blocks || rank() != 0) schedule_.fault("not this block's to start");
  const Columns sums{static_cast<int>(args.sums & 0xFFFF), n};
  if (args.sums >> 16 != 0) schedule_.fault("sums that begin below the first lane");
  Product product{.first_block = static_cast<int>(rank()),
                  .sms = args.sms,
                  .rows = kTensorLanes,
                  .columns = n,
                  .kind = args.kind,
                  .sums = sums,
                  .a = args.a,
                  .b = args.b,
                  .add = args.add};
  for (const std::uint64_t operand : {args.a, args.b}) {
    if (field(operand, 46, 48) != 1 || field(operand, 48, 61) != 0 || field(operand, 61, 64) != 2) {
      schedule_.fault("not a tile in the swizzle of 128 bytes");
    }
    const std::uint32_t first = field(operand, 0, 14) << 4;
    if (first % 1024 + kProductBytes > 128) schedule_.fault("a tile that begins within an atom");
    const int rows = operand == args.a ? product.rows : n / args.sms;
    for (int block = 0; block < args.sms; ++block) {
      product.reads.push_back({block, first & ~1023u, end_of(operand, rows)});
    }
  }
  for (const Range& read : product.reads) {
    if (read.first < kSharedBase || read.end - kSharedBase > shape_.shared_bytes) {
      schedule_.fault("operands outside of shared memory");
    }
    for (const Copy& copy : copies_) {
      if (copy.to.block == read.block && copy.to.first < read.end && read.first < copy.to.end) {
        schedule_.fault("a product of what is still being copied");
      }
    }
  }
  for (int block = 0; block < args.sms; ++block) {
    check_allocated(blocks_[static_cast<std::size_t>(block)], sums);
  }
  for (const auto& thread : threads_) {
    for (const Load& load : thread->loads) {
      if (overlap(load.column, kLanes, sums.first, sums.count)) {
        schedule_.fault("a product over sums that are being read");
      }
    }
  }
  products_[rank()].push_back(std::move(product));
  schedule_.wait_until("its turn", [] { return true; });
}

void Cluster::commit(int sms, std::uint32_t barrier, std::uint32_t blocks) {
  if (sms != shape_.blocks) schedule_.fault("arrivals for products of other SMs");
  Product arrivals{};
  for (std::uint32_t block = 0; block < 32; ++block) {
    if ((blocks >> block & 1) != 0) {
      arrivals.arrivals.push_back((block + 1) << 24 | (barrier & kOffset));
    }
  }
  for (const std::uint32_t address : arrivals.arrivals) barrier_at(address);
  products_[rank()].push_back(std::move(arrivals));
  schedule_.wait_until("its turn", [] { return true; });
}

/// Rows of 32 bytes, as floats.
std::vector<float> Cluster::operand(int block, std::uint64_t descriptor, int rows,
                                    OperandKind kind) {
  const std::uint32_t first = field(descriptor, 0, 14) << 4;
  const std::uint32_t stride = field(descriptor, 32, 46) << 4;
  const unsigned char* shared = blocks_[static_cast<std::size_t>(block)].shared;
  const int size = kind == OperandKind::f16 ? 2 : 4;
  std::vector<float> values;
  for (std::uint32_t row = 0; row < static_cast<std::uint32_t>(rows); ++row) {
    for (int byte = 0; byte < kProductBytes; byte += size) {
      std::uint32_t at =
          first + row / 8 * stride + row % 8 * 128 + static_cast<std::uint32_t>(byte);
      at ^= (at >> 7 & 7) << 4;
      std::uint32_t bits = 0;
      std::memcpy(&bits, shared + at - kSharedBase, static_cast<std::size_t>(size));
      // bf16 is the upper half of a float; tf32 leaves out 13 bits.
      bits = kind == OperandKind::f16 ? bits << 16 : bits & ~0x1FFFu;
      values.push_back(std::bit_cast<float>(bits));
    }
  }
  return values;
}

void Cluster::finish_product(const Product& product) {
  for (const std::uint32_t address : product.arrivals) {
    Barrier& barrier = barrier_at(address);
    if (barrier.pending == 0) schedule_.fault("one arrival too many at " + place(address));
    --barrier.pending;
    complete(barrier);
  }
  if (product.rows == 0) return;
  const int depth = kProductBytes / (product.kind == OperandKind::f16 ? 2 : 4);
  std::vector<float> b;
  for (int part = 0; part < product.sms; ++part) {
    const auto rows = operand(part, product.b, product.columns / product.sms, product.kind);
    b.insert(b.end(), rows.begin(), rows.end());
  }
  for (int part = 0; part < product.sms; ++part) {
    const auto a = operand(part, product.a, product.rows, product.kind);
    Block& block = blocks_[static_cast<std::size_t>(part)];
    for (int row = 0; row < product.rows; ++row) {
      float* sums = block.tensor.data() + row * kTensorColumns + product.sums.first;
      for (int column = 0; column < product.columns; ++column) {
        float sum = product.add ? sums[column] : 0;
        for (int i = 0; i < depth; ++i) {
          sum += a[static_cast<std::size_t>(row) * depth + i] *
                 b[static_cast<std::size_t>(column) * depth + i];
        }
        sums[column] = sum;
      }
    }
  }
}

void Cluster::load_sums(float* d, std::uint32_t address) {
  check_fresh("a load of sums");
  Thread& thread = self();
  const Columns columns{static_cast<int>(address & 0xFFFF), kLanes};
  const int lane = static_cast<int>(address >> 16);
  if (lane != thread.index / kLanes % 4 * kLanes) {
    schedule_.fault("lanes of tensor memory that are not the warp's");
  }
  meet(own().warps[static_cast<std::size_t>(thread.index / kLanes)], kLanes,
       fmt::format("load {}", address), [&] {
         check_allocated(own(), columns);
         for (const auto& products : products_) {
           for (const Product& product : products) {
             if (product.rows > 0 &&
                 overlap(columns.first, columns.count, product.sums.first, product.sums.count)) {
               schedule_.fault("a load of sums that are not done");
             }
           }
         }
       });
  std::fill(d, d + kLanes, std::bit_cast<float>(0xFFFFFFFFu));
  thread.loads.push_back({d, lane + thread.index % kLanes, columns.first});
  thread.unfenced = true;
}

void Cluster::wait_for_loads() {
  Thread& thread = self();
  const Block& block = own();
  for (const Load& load : thread.loads) {
    std::copy_n(block.tensor.data() + load.lane * kTensorColumns + load.column, kLanes, load.d);
  }
  thread.loads.clear();
  meet(own().warps[static_cast<std::size_t>(thread.index / kLanes)], kLanes, "wait for loads",
       [] {});
}

}  // namespace gauntlet::emulated
