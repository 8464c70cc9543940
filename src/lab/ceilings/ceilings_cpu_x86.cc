#include "lab/ceilings/ceilings_cpu_kernels.h"

namespace gauntlet::lab::inline ceilings {
#if defined(__x86_64__)
namespace {

// Every loop moves 512 bytes per turn: eight cache lines, so that counting costs nothing beside
// them.
#define OFFSETS_32 "0,32,64,96,128,160,192,224,256,288,320,352,384,416,448,480"
#define OFFSETS_64 "0,64,128,192,256,320,384,448"

// Loads to one register do not wait for each other: each gets a new physical one.
#define READ(name, vector, offsets)                                               \
  void name(const std::byte* from, std::size_t bytes) {                           \
    asm volatile("1:\n .irp offset," offsets "\n vmovups \\offset(%0), %%" vector \
                 "0\n .endr\n add $512, %0\n sub $512, %1\n jnz 1b\n vzeroupper"  \
                 : "+r"(from), "+r"(bytes)                                        \
                 :                                                                \
                 : "xmm0", "cc", "memory");                                       \
  }
READ(read_avx2, "ymm", OFFSETS_32)
READ(read_avx512, "zmm", OFFSETS_64)
#undef READ

// Four streams a quarter of the buffer apart: more of them in flight than one prefetcher stream
// keeps.
#define READ_STREAMS(name, vector, offsets)                                       \
  void name(const std::byte* from, std::size_t bytes) {                           \
    const std::size_t quarter = bytes / 4;                                        \
    std::size_t left = quarter;                                                   \
    asm volatile("1:\n .irp offset," offsets "\n vmovups \\offset(%0), %%" vector \
                 "0\n vmovups \\offset(%0,%2), %%" vector                         \
                 "0\n vmovups \\offset(%0,%2,2), %%" vector                       \
                 "0\n vmovups \\offset(%0,%3), %%" vector                         \
                 "0\n .endr\n add $128, %0\n sub $128, %1\n jnz 1b\n vzeroupper"  \
                 : "+r"(from), "+r"(left)                                         \
                 : "r"(quarter), "r"(3 * quarter)                                 \
                 : "xmm0", "cc", "memory");                                       \
  }
READ_STREAMS(read_avx2_streams, "ymm", "0,32,64,96")
READ_STREAMS(read_avx512_streams, "zmm", "0,64")
#undef READ_STREAMS

#define WRITE(name, store, vector, offsets)                                                   \
  void name(std::byte* to, std::size_t bytes) {                                               \
    asm volatile("vpcmpeqd %%ymm0, %%ymm0, %%ymm0\n 1:\n .irp offset," offsets "\n " store    \
                 " %%" vector                                                                 \
                 "0, \\offset(%0)\n .endr\n add $512, %0\n sub $512, %1\n jnz 1b\n sfence\n " \
                 "vzeroupper"                                                                 \
                 : "+r"(to), "+r"(bytes)                                                      \
                 :                                                                            \
                 : "xmm0", "cc", "memory");                                                   \
  }
WRITE(write_avx2, "vmovups", "ymm", OFFSETS_32)
WRITE(write_avx2_streaming, "vmovntps", "ymm", OFFSETS_32)
WRITE(write_avx512, "vmovups", "zmm", OFFSETS_64)
WRITE(write_avx512_streaming, "vmovntps", "zmm", OFFSETS_64)
#undef WRITE

#define COPY(name, store, vector, offsets)                                                     \
  void name(std::byte* to, const std::byte* from, std::size_t bytes) {                         \
    asm volatile("1:\n .irp offset," offsets "\n vmovups \\offset(%1), %%" vector "0\n " store \
                 " %%" vector                                                                  \
                 "0, \\offset(%0)\n .endr\n add $512, %0\n add $512, %1\n sub $512, %2\n "     \
                 "jnz 1b\n sfence\n vzeroupper"                                                \
                 : "+r"(to), "+r"(from), "+r"(bytes)                                           \
                 :                                                                             \
                 : "xmm0", "cc", "memory");                                                    \
  }
COPY(copy_avx2, "vmovups", "ymm", OFFSETS_32)
COPY(copy_avx2_streaming, "vmovntps", "ymm", OFFSETS_32)
COPY(copy_avx512, "vmovups", "zmm", OFFSETS_64)
COPY(copy_avx512_streaming, "vmovntps", "zmm", OFFSETS_64)
#undef COPY

void write_rep_stosb(std::byte* to, std::size_t bytes) {
  asm volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(0x5a) : "memory");
}

void copy_rep_movsb(std::byte* to, const std::byte* from, std::size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

constexpr int kChains = 12;  // independent sums: above latency times units (4 × 2, VNNI 5 × 2)
// Finite and far from denormal as f32, as f64, as bf16 and as bytes.
alignas(64) constexpr float kOperands[16] = {1.1f, -0.7f, 0.3f, 1.9f, -1.3f, 0.9f, 0.5f, -0.2f,
                                             0.8f, -1.7f, 1.2f, 0.6f, -0.4f, 1.4f, 0.1f, -1.6f};

// `step` adds to register \chain from operands in 14 and 15; 13 is scratch.
#define ARITHMETIC(name, vector, step)                                                             \
  void name(std::int64_t iterations) {                                                             \
    asm volatile("vmovups %[operands], %%" vector "14\n vmovups %[operands], %%" vector            \
                 "15\n .irp chain,0,1,2,3,4,5,6,7,8,9,10,11\n vpxor %%xmm\\chain, %%xmm\\chain, "  \
                 "%%xmm\\chain\n .endr\n 1:\n .irp chain,0,1,2,3,4,5,6,7,8,9,10,11\n " step        \
                 "\n .endr\n dec %[iterations]\n jnz 1b\n vzeroupper"                              \
                 : [iterations] "+r"(iterations)                                                   \
                 : [operands] "m"(kOperands)                                                       \
                 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
                   "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");          \
  }
ARITHMETIC(fma_f32_avx2, "ymm", "vfmadd231ps %%ymm14, %%ymm15, %%ymm\\chain")
ARITHMETIC(fma_f64_avx2, "ymm", "vfmadd231pd %%ymm14, %%ymm15, %%ymm\\chain")
ARITHMETIC(dot_i8_avx2, "ymm",
           "vpmaddubsw %%ymm14, %%ymm15, %%ymm13\n vpmaddwd %%ymm14, %%ymm13, %%ymm13\n "
           "vpaddd %%ymm13, %%ymm\\chain, %%ymm\\chain")
ARITHMETIC(fma_f32_avx512, "zmm", "vfmadd231ps %%zmm14, %%zmm15, %%zmm\\chain")
ARITHMETIC(fma_f64_avx512, "zmm", "vfmadd231pd %%zmm14, %%zmm15, %%zmm\\chain")
ARITHMETIC(dot_i8_avx512, "zmm", "vpdpbusd %%zmm14, %%zmm15, %%zmm\\chain")
ARITHMETIC(dot_bf16_avx512, "zmm", "vdpbf16ps %%zmm14, %%zmm15, %%zmm\\chain")
#undef ARITHMETIC
#undef OFFSETS_32
#undef OFFSETS_64

/// Multiply and add of each element of a vector, times the chains.
constexpr double operations(int vector_bytes, int element_bytes) {
  return 2.0 * kChains * vector_bytes / element_bytes;
}

}  // namespace

CpuMethods x86_methods() {
  CpuMethods methods;
  methods.writes.push_back({"rep stosb", write_rep_stosb});
  methods.copies.push_back({"rep movsb", copy_rep_movsb});
  if (__builtin_cpu_supports("avx2")) {
    methods.reads.push_back({"AVX2", read_avx2});
    methods.reads.push_back({"AVX2, 4 streams", read_avx2_streams});
    methods.writes.push_back({"AVX2", write_avx2});
    methods.writes.push_back({"AVX2 streaming stores", write_avx2_streaming});
    methods.copies.push_back({"AVX2", copy_avx2});
    methods.copies.push_back({"AVX2 streaming stores", copy_avx2_streaming});
    methods.arithmetic.push_back({"fma_i8", "AVX2", operations(32, 1), dot_i8_avx2});
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    methods.arithmetic.push_back({"fma_f32", "AVX2", operations(32, 4), fma_f32_avx2});
    methods.arithmetic.push_back({"fma_f64", "AVX2", operations(32, 8), fma_f64_avx2});
  }
  if (__builtin_cpu_supports("avx512f")) {
    methods.reads.push_back({"AVX-512", read_avx512});
    methods.reads.push_back({"AVX-512, 4 streams", read_avx512_streams});
    methods.writes.push_back({"AVX-512", write_avx512});
    methods.writes.push_back({"AVX-512 streaming stores", write_avx512_streaming});
    methods.copies.push_back({"AVX-512", copy_avx512});
    methods.copies.push_back({"AVX-512 streaming stores", copy_avx512_streaming});
    methods.arithmetic.push_back({"fma_f32", "AVX-512", operations(64, 4), fma_f32_avx512});
    methods.arithmetic.push_back({"fma_f64", "AVX-512", operations(64, 8), fma_f64_avx512});
  }
  if (__builtin_cpu_supports("avx512vnni")) {
    methods.arithmetic.push_back({"fma_i8", "AVX-512 VNNI", operations(64, 1), dot_i8_avx512});
  }
  if (__builtin_cpu_supports("avx512bf16")) {
    methods.arithmetic.push_back({"fma_bf16", "AVX-512 BF16", operations(64, 2), dot_bf16_avx512});
  }
  return methods;
}

#else

CpuMethods x86_methods() { return {}; }

#endif
}  // namespace gauntlet::lab::inline ceilings
