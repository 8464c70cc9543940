#include "core/os/dynamic_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "core/os/fake_tree.h"

namespace gauntlet {
namespace {

TEST(DynamicLibrary, calls_a_function_of_a_library) {
  const auto library = DynamicLibrary::open({.names = {"libm.so.6"}});
  ASSERT_TRUE(library);
  EXPECT_NE(library->path().find("/libm.so.6"), std::string::npos);
  const auto cosine = library->symbol<double(double)>("cos");
  ASSERT_TRUE(cosine);
  EXPECT_EQ((*cosine)(0.0), 1.0);
}

TEST(DynamicLibrary, takes_the_first_name_that_exists) {
  const auto library = DynamicLibrary::open({.names = {"libabsent_13.so", "libm.so.6"}});
  ASSERT_TRUE(library);
  EXPECT_NE(library->path().find("/libm.so.6"), std::string::npos);
}

TEST(DynamicLibrary, says_what_is_missing_and_where_it_looked) {
  const auto library =
      DynamicLibrary::open({.names = {"libabsent.so.7"}, .folders = {"/nowhere/lib"}});
  ASSERT_FALSE(library);
  const std::string& message = library.error().message;
  EXPECT_TRUE(message.starts_with("libabsent.so.7 not found")) << message;
  EXPECT_NE(message.find("/nowhere/lib"), std::string::npos);
  EXPECT_NE(message.find("LD_LIBRARY_PATH"), std::string::npos);
}

TEST(DynamicLibrary, gives_the_loaders_words_for_a_file_it_refuses) {
  FakeTree tree;
  tree.write("libbroken.so", "not a library");
  const auto library =
      DynamicLibrary::open({.names = {"libbroken.so"}, .folders = {tree.root().string()}});
  ASSERT_FALSE(library);
  EXPECT_TRUE(library.error().message.starts_with("libbroken.so cannot be loaded: "))
      << library.error().message;
}

TEST(DynamicLibrary, names_the_function_it_lacks) {
  const auto library = DynamicLibrary::open({.names = {"libm.so.6"}});
  ASSERT_TRUE(library);
  const auto absent = library->symbol<void()>("no_such_function");
  ASSERT_FALSE(absent);
  EXPECT_NE(absent.error().message.find("no_such_function"), std::string::npos);
  EXPECT_NE(absent.error().message.find("libm.so.6"), std::string::npos);
}

TEST(DynamicLibrary, finds_an_exported_object) {
  const auto library = DynamicLibrary::open({.names = {"libm.so.6"}});
  ASSERT_TRUE(library);
  const auto sign = library->address("signgam");
  const auto log_gamma = library->symbol<double(double)>("lgamma");
  ASSERT_TRUE(sign && log_gamma);
  (*log_gamma)(-0.5);
  EXPECT_EQ(*static_cast<int*>(*sign), -1);
  (*log_gamma)(0.5);
  EXPECT_EQ(*static_cast<int*>(*sign), 1);
}

TEST(DynamicLibrary, shows_its_symbols_to_others_only_where_asked) {
  // Part of the C library's package, and no other test opens it.
  const char* name = "libnss_compat.so.2";
  const char* symbol = "_nss_compat_getpwnam_r";
  const auto local = DynamicLibrary::open({.names = {name}});
  if (!local) GTEST_SKIP() << local.error().message;
  EXPECT_EQ(dlsym(RTLD_DEFAULT, symbol), nullptr);
  const auto global = DynamicLibrary::open({.names = {name}, .scope = SymbolScope::global});
  ASSERT_TRUE(global);
  EXPECT_NE(dlsym(RTLD_DEFAULT, symbol), nullptr);
}

TEST(DynamicLibrary, stays_usable_after_a_move) {
  auto first = DynamicLibrary::open({.names = {"libm.so.6"}});
  ASSERT_TRUE(first);
  DynamicLibrary moved = std::move(*first);
  EXPECT_TRUE(moved.symbol<double(double)>("sin"));
  EXPECT_THROW((void)first->symbol<double(double)>("sin"), Fault);
}

TEST(CudaLibraryFolders, hold_the_usual_place) {
  const auto folders = cuda_library_folders();
  EXPECT_NE(std::find(folders.begin(), folders.end(), "/usr/local/cuda/lib64"), folders.end());
}

}  // namespace
}  // namespace gauntlet
