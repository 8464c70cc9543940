// Does the digest of a source follow its code, and nothing else?
#include "tests/gpu/code_text.h"

#include <gtest/gtest.h>

namespace gauntlet::tests::gpu {
namespace {

TEST(CppCode, leaves_out_comments_indentation_and_empty_lines) {
  EXPECT_EQ(cpp_code("// what\n\nint  a;  // why\n  /* how\n long */ int b;\n"),
            "int a;\nint b;\n");
  EXPECT_EQ(cpp_code("int a; // one \\\n still the comment\nint b;"), "int a;\nint b;\n");
  EXPECT_EQ(cpp_code(""), "");
  EXPECT_EQ(cpp_code("/* never closed"), "");
}

TEST(CppCode, keeps_lines_apart_as_the_preprocessor_does) {
  EXPECT_NE(cpp_code("#define A\nint b;"), cpp_code("#define A int b;"));
  EXPECT_NE(cpp_code("int a/**/b;"), cpp_code("int ab;"));
}

TEST(CppCode, keeps_literals_whatever_they_look_like) {
  EXPECT_EQ(cpp_code("f(\"a // b\");\n"), "f(\"a // b\");\n");
  EXPECT_EQ(cpp_code("f(\"\\\"//\");  // c\n"), "f(\"\\\"//\");\n");
  EXPECT_EQ(cpp_code("f(\"a  b\");\n"), "f(\"a  b\");\n");
  EXPECT_EQ(cpp_code("f('\"');  // '\nint b;\n"), "f('\"');\nint b;\n");
  EXPECT_EQ(cpp_code("asm(R\"x( // \" \n  mov; )\" )x\");  // c\n"),
            "asm(R\"x( // \" \n  mov; )\" )x\");\n");
}

TEST(CppCode, takes_the_quotes_inside_of_a_number_for_what_they_are) {
  EXPECT_EQ(cpp_code("int a = 1'000;  // b's\nint c = 0x1'f;\n"),
            "int a = 1'000;\nint c = 0x1'f;\n");
}

TEST(CppCode, keeps_the_comment_that_the_build_reads) {
  EXPECT_EQ(cpp_code("// subject: register spilling\nint a;\n"),
            "// subject: register spilling\nint a;\n");
}

TEST(CmakeCode, leaves_out_lines_that_are_comments) {
  EXPECT_EQ(cmake_code("# why\n  set(a \"#\")\n\n"), "set(a \"#\")\n");
}

TEST(CodeOf, goes_by_the_name_of_the_file) {
  EXPECT_EQ(code_of("a.cuh", "// b\n"), "");
  EXPECT_EQ(code_of("a.cmake", "# b\n"), "");
  EXPECT_EQ(code_of("a.txt", "// b\n"), "// b\n");
}

TEST(Digest, is_the_beginning_of_sha256) { EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea"); }

}  // namespace
}  // namespace gauntlet::tests::gpu
