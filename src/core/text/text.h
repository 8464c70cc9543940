// Words for people: the nearest valid name, sizes, times and ratios, and slugs for keys.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gauntlet {

/// The valid name closest to a mistyped one by edit distance (a swap of neighbours counts once,
/// case does not count); empty when none is near. Of equally near names the first wins.
std::string nearest(const std::string& wrong, const std::vector<std::string>& valid);

/// "512 B", "1.5 KiB", "139 GiB": powers of 1024, three significant digits.
std::string format_bytes(double bytes);

/// "0.42 ns", "12.3 us", "1.85 ms", "2.4 s", then "3 min 05 s" and "2 h 07 min".
std::string format_duration_ns(double ns);

/// "1.85x", "0.97x", "12.3x", "390x".
std::string format_ratio(double ratio);

/// "just now", "5 minutes ago", "3 days ago"; a time in the future is "just now".
std::string format_age(std::int64_t seconds);

/// Lower-case letters and digits with single dashes between: "NVIDIA H200" -> "nvidia-h200".
std::string slugify(std::string_view text);

/// Without white space at either end.
std::string trim(std::string_view text);

std::vector<std::string> split_lines(std::string_view text);
/// The words of a line: what white space separates.
std::vector<std::string> split_words(std::string_view line);

}  // namespace gauntlet
