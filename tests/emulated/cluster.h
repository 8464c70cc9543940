// A cluster of one or two blocks of an emulated GPU with tensor memory (sm_100a): shared memory,
// barriers that count arrivals and bytes, tensor copies, and products whose sums lie in tensor
// memory. What the hardware leaves undefined is a fault.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/random.h"
#include "tests/emulated/schedule.h"

namespace gauntlet::emulated {

constexpr int kLanes = 32;
constexpr int kTensorLanes = 128;
constexpr int kTensorColumns = 512;
constexpr std::uint32_t kSharedBase = 1024;  // dynamic shared memory begins after the system's

/// A matrix and the boxes in which it is copied.
struct TileMap {
  const unsigned char* address = nullptr;
  DType type = DType::f32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t pitch_bytes = 0;
  int box_rows = 0;
  int box_columns = 0;
  bool swizzled = false;  // in the swizzle of 128 bytes
};

struct ClusterShape {
  int blocks = 1;
  int threads = 0;  // of a block
  std::size_t shared_bytes = 0;
};

enum class OperandKind { f16, tf32 };

struct ProductArgs {
  int sms = 1;
  OperandKind kind = OperandKind::f16;
  std::uint32_t sums = 0;
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint32_t what = 0;
  bool add = false;
};

class Cluster {
 public:
  Cluster(Random& random, const ClusterShape& shape);

  /// Runs the body in every thread; the first fault, or nothing.
  std::string run(const std::function<void(int block, int thread)>& body);

  /// The cluster that the calling thread is in.
  static Cluster& current();

  void* shared();
  std::uint32_t shared_address(const void* pointer);
  std::uint32_t rank();

  void sync_warp();
  void sync_block();
  void arrive_at_cluster();
  void wait_for_cluster();

  void init_barrier(std::uint32_t address, std::uint32_t arrivals);
  void publish_barriers();
  void arrive(std::uint32_t address, std::int64_t bytes);
  void wait_for_phase(std::uint32_t address, std::uint32_t parity);
  /// One of the block's own barriers unless it is a copy of a pair.
  void copy(int sms, std::uint32_t to, const TileMap& map, int column, int row,
            std::uint32_t barrier);

  void allocate(int sms, std::uint32_t* address, std::uint32_t columns);
  void release(int sms, std::uint32_t address, std::uint32_t columns);
  void start_product(const ProductArgs& args);
  /// At the barriers at this place in the blocks whose bits are set.
  void commit(int sms, std::uint32_t barrier, std::uint32_t blocks);
  void load_sums(float* d, std::uint32_t address);
  void wait_for_loads();
  void fence_before_sync();
  void fence_after_sync();

 private:
  struct Meeting {
    int arrived = 0;
    int number = 0;
    std::string tag = {};
  };
  struct Barrier {
    std::uint32_t needed = 0;
    std::uint32_t pending = 0;
    std::int64_t bytes = 0;
    std::uint32_t phase = 0;
    bool published = false;
  };
  struct Load {
    float* d;
    int lane;
    int column;
  };
  struct Thread {
    int block;
    int index;
    bool unfenced = false;  // used tensor memory, and no fence came after
    bool stale = false;     // was told of others' use of it, and no fence came after
    int cluster_number = -1;
    std::vector<Load> loads = {};
  };
  struct Columns {
    int first;
    int count;
  };
  struct Block {
    std::vector<unsigned char> bytes = {};
    unsigned char* shared = nullptr;  // in bytes, a multiple of 1024
    std::map<std::uint32_t, Barrier> barriers = {};
    std::vector<Meeting> warps = {};
    Meeting all = {};
    std::vector<float> tensor = std::vector<float>(kTensorLanes * kTensorColumns);
    std::vector<Columns> allocated = {};
    int running = 0;
  };
  struct Range {
    int block;
    std::uint32_t first;
    std::uint32_t end;
  };
  struct Copy {
    Range to;
    TileMap map;
    int column;
    int row;
    std::uint32_t barrier;
  };
  /// A product as its descriptors say it, or, without rows, the arrivals after those before it.
  struct Product {
    int first_block = 0;
    int sms = 1;
    int rows = 0;  // of a block
    int columns = 0;
    OperandKind kind = OperandKind::f16;
    Columns sums = {};
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    bool add = false;
    std::vector<Range> reads = {};
    std::vector<std::uint32_t> arrivals = {};
  };

  Thread& self();
  Block& own() { return blocks_[static_cast<std::size_t>(self().block)]; }
  Block& block_of(std::uint32_t address);
  Barrier& barrier_at(std::uint32_t address);
  std::string place(std::uint32_t address) const;
  void meet(Meeting& meeting, int needed, const std::string& tag,
            const std::function<void()>& last);
  void at_sync();
  void complete(Barrier& barrier);
  void check_allocated(const Block& block, Columns columns);
  void check_fresh(const char* what);
  int num_ready();
  void perform(int number);
  void finish_copy(const Copy& copy);
  void finish_product(const Product& product);
  std::string left_over();
  std::vector<float> operand(int block, std::uint64_t descriptor, int rows, OperandKind kind);

  Random& random_;
  Schedule schedule_;
  ClusterShape shape_;
  std::vector<Block> blocks_;
  std::vector<std::unique_ptr<Thread>> threads_;
  Meeting cluster_;
  std::vector<Copy> copies_;
  std::vector<std::deque<Product>> products_;  // of each block, in the order of their start
};

}  // namespace gauntlet::emulated
