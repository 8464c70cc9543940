// What of a source file the compiler sees: the same text for two versions that differ in comments
// and blank space alone, so that a better comment needs no GPU.
#pragma once
#include <string>
#include <string_view>

namespace gauntlet::tests::gpu {

/// C++ and CUDA without comments, indentation and empty lines; literals stay as they are. The
/// comment
/// "// subject: ..." stays, because the build reads it.
std::string cpp_code(std::string_view text);

/// CMake without lines that are comments, indentation and empty lines.
std::string cmake_code(std::string_view text);

/// By the name of the file; any other file counts as it is.
std::string code_of(std::string_view path, std::string_view text);

/// The first 16 hexadecimal digits of the SHA-256.
std::string digest(std::string_view text);

}  // namespace gauntlet::tests::gpu
