// A small tree with everything that makes units: targets of two chapters, a kernel with its test,
// the engine, the lab with a planted lie, the build's flags.
#pragma once
#include <string>

#include "core/os/fake_tree.h"
#include "tests/gpu/units.h"

namespace gauntlet::tests::gpu {

inline constexpr const char* kSanitized = "kernels_test RouterOnGpu.chooses*\n";

class FakeProject : public FakeTree {
 public:
  FakeProject() {
    write("cmake/Cuda.cmake", "add_compile_options(-lineinfo)\n");
    write("cmake/Catalog.cmake", "function(gauntlet_catalog)\nendfunction()\n");
    write("tests/gpu/sanitized", kSanitized);
    for (const char* target : {"ch01/one", "ch07/copy", "ch07/tile"}) add_target(target);
    write("catalog/ch07/tile/optimized.cu", "#include \"ptx/mma.cuh\"\nint tile_optimized;\n");
    write("catalog/ch07/copy/optimized.cc", "int on_the_cpu;\n");
    write("src/ptx/mma.cuh", "int mma;\n");
    write("src/core/check.h", "int check;\n");
    write("src/core/cuda/memory.h", "#include \"core/check.h\"\n");
    write("src/lab/author/pair.h", "#include \"core/check.h\"\nint pair;\n");
    write("src/lab/measure/measure.h", "int measure;\n");
    write("src/lab/measure/measure.cc", "#include \"lab/measure/measure.h\"\n");
    write("src/lab/measure/measure_test.cc", "TEST(Measure, takes_turns) {}\n");
    write("src/lab/report/html.cc", "int html;\n");
    write("src/kernels/cuda/router.h", "#include \"core/cuda/memory.h\"\nint router;\n");
    write("src/kernels/cuda/router.cu", "#include \"kernels/cuda/router.h\"\n");
    write("src/kernels/cuda/router_test.cc",
          "#include \"kernels/cuda/router.h\"\nTEST(RouterOnGpu, chooses) {}\n");
    write("src/engine/cuda/forward.cc", "#include \"kernels/cuda/router.h\"\nint forward;\n");
    write("src/engine/cuda_golden_test.cc", "TEST(CudaGoldenOnGpu, choices) {}\n");
    write("src/engine/measure/speed.cc", "int speed;\n");
    write("tests/lies_test.cc", "TEST(LiesOnGpu, are_all_found) { run(GAUNTLET_LIES_BINARY); }\n");
    write("tests/lies/lies/hangs/pair.cc", "int lie;\n");
    write("tests/lies/lies/hangs/optimized.cu", "int hangs;\n");
  }

  Units units() const {
    auto found = find_units(SourceTree(root()), kSanitized);
    check(static_cast<bool>(found), "the units of the fake project can be found");
    return *found;
  }

 private:
  void add_target(const std::string& folder) {
    const std::string path = "catalog/" + folder + "/";
    write(path + "pair.h", "int params;\n");
    write(path + "pair.cc",
          "#include \"lab/author/pair.h\"\n#include \"" + path + "pair.h\"\nint declared;\n");
    write(path + "baseline.cu", "#include \"" + path + "pair.h\"\nint baseline;\n");
    write(path + "optimized.cu", "int optimized;\n");
  }
};

}  // namespace gauntlet::tests::gpu
