#include "bench/core/utc_time.hpp"

#include <ctime>

namespace bench {

std::string utc_time(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, format, &utc);
  return {text, length};
}

std::string utc_timestamp() { return utc_time("%Y-%m-%dT%H:%M:%SZ"); }

}  // namespace bench
