// The time of day in UTC as text, for run records and for names of directories.
#pragma once

#include <string>

namespace bench {

// `format` as strftime takes it.
std::string utc_time(const char* format);
// "2025-01-31T12:00:00Z" (RFC 3339).
std::string utc_timestamp();

}  // namespace bench
