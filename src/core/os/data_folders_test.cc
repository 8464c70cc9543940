#include "core/os/data_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fake_tree.h"

namespace gauntlet {
namespace {

namespace fs = std::filesystem;

/// Goes back where it was.
struct WorkingDirectory {
  explicit WorkingDirectory(const fs::path& to) { fs::current_path(to); }
  ~WorkingDirectory() { fs::current_path(before); }
  fs::path before = fs::current_path();
};

TEST(DataFolders, are_found_at_and_above_the_working_directory_the_nearest_first) {
  FakeTree tree;
  tree.write("/gauntlet-data/a", "");
  tree.write("/below/gauntlet-data/b", "");
  tree.write("/below/further/c", "");
  const WorkingDirectory inside(tree.root() / "below" / "further");
  const fs::path root = fs::canonical(tree.root());
  EXPECT_THAT(data_folders("gauntlet-data"),
              testing::ElementsAre(root / "below" / "gauntlet-data", root / "gauntlet-data"));
  EXPECT_THAT(data_folders("gauntlet-no-such-data"), testing::IsEmpty());
}

}  // namespace
}  // namespace gauntlet
