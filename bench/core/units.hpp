// Sizes and times as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace bench {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;

std::string format_bytes(std::uint64_t bytes);    // "1.5 GiB"
std::string format_duration_ns(std::int64_t ns);  // "12.3 ms"
std::string format_count(double value);           // "25.6 M"

}  // namespace bench
