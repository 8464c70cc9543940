// Is everything found that decides what a source does?
#include "tests/gpu/source_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fake_tree.h"

namespace gauntlet::tests::gpu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> closure(const FakeTree& tree, const std::string& root,
                                 const std::string& left_out = "nothing") {
  std::vector<std::string> paths;
  for (const auto& [path, code] :
       SourceTree(tree.root())
           .closure({root}, [&](const std::string& p) { return p == left_out; })
           .files) {
    paths.push_back(path);
  }
  return paths;
}

TEST(SourceTree, follows_includes_below_src_the_root_and_beside_however_deep) {
  FakeTree tree;
  tree.write("catalog/ch07/a/side.cu",
             "#include \"ptx/b.cuh\"\n  #  include \"catalog/ch07/a/pair.h\"\n#include <vector>\n"
             "#include \"table.inc\"\n#include \"not/there.h\"\n")
      .write("catalog/ch07/a/pair.h", "")
      .write("catalog/ch07/a/table.inc", "")
      .write("src/ptx/b.cuh", "#include \"ptx/c.cuh\"\n")
      .write("src/ptx/c.cuh", "#include \"ptx/b.cuh\"\n")
      .write("src/ptx/other.cuh", "");
  EXPECT_THAT(closure(tree, "catalog/ch07/a/side.cu"),
              ElementsAre("catalog/ch07/a/pair.h", "catalog/ch07/a/side.cu",
                          "catalog/ch07/a/table.inc", "src/ptx/b.cuh", "src/ptx/c.cuh"));
}

TEST(SourceTree, goes_from_a_header_to_what_implements_it) {
  FakeTree tree;
  tree.write("src/k/cuda/x_test.cc", "#include \"k/cuda/x.h\"\n")
      .write("src/k/cuda/x.h", "")
      .write("src/k/cuda/x.cu", "#include \"k/cuda/x.h\"\n#include \"k/cuda/tile.cuh\"\n")
      .write("src/k/cuda/x.sm90a.cu", "")
      .write("src/k/cuda/tile.cuh", "")
      .write("src/k/cuda/part_of_x.cu", "#include \"k/cuda/x.h\"\n")
      .write("src/k/cuda/y.h", "")
      .write("src/k/cuda/y.cu", "#include \"k/cuda/x.h\"\n")
      .write("src/k/cuda/no_cuda_x.cc", "#include \"k/cuda/x.h\"\n");
  EXPECT_THAT(closure(tree, "src/k/cuda/x_test.cc"),
              ElementsAre("src/k/cuda/part_of_x.cu", "src/k/cuda/tile.cuh", "src/k/cuda/x.cu",
                          "src/k/cuda/x.h", "src/k/cuda/x.sm90a.cu", "src/k/cuda/x_test.cc"));
}

TEST(SourceTree, does_not_follow_what_is_left_out) {
  FakeTree tree;
  tree.write("src/a/a.cu", "#include \"a/b.h\"\n")
      .write("src/a/b.h", "#include \"a/c.h\"\n")
      .write("src/a/c.h", "");
  EXPECT_THAT(closure(tree, "src/a/a.cu", "src/a/b.h"), ElementsAre("src/a/a.cu"));
}

TEST(Differences, name_what_changed_came_and_went) {
  const SourceSet before{{{"same", "1"}, {"changed", "1"}, {"gone", "1"}}};
  const SourceSet after{{{"same", "1"}, {"changed", "2"}, {"new", "1"}}};
  EXPECT_THAT(differences(before, after), ElementsAre("changed", "gone", "new"));
  EXPECT_THAT(differences(after, after), IsEmpty());
  EXPECT_NE(before.id(), after.id());
}

}  // namespace
}  // namespace gauntlet::tests::gpu
