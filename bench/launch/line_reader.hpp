// Lines from a non-blocking descriptor, whatever the other side writes: partial lines wait for the
// rest, and a line beyond the limit is dropped instead of filling the memory.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

class LineReader {
 public:
  explicit LineReader(std::size_t line_bytes_max = kDefaultLineBytesMax)
      : line_bytes_max_(line_bytes_max) {}

  // Reads what is there now and returns the complete lines. closed() tells that the end was seen.
  std::vector<std::string> read_from(int fd);
  bool closed() const { return closed_; }
  bool drained() const { return drained_ || closed_; }  // the last read took all there was
  int dropped_lines() const { return dropped_lines_; }

 private:
  // A report with a sample of every step is some megabytes at most.
  static constexpr std::size_t kDefaultLineBytesMax = std::size_t{64} << 20;
  void take(const char* data, std::size_t size, std::vector<std::string>& lines);

  std::size_t line_bytes_max_;
  std::string partial_;
  bool dropping_ = false;
  bool closed_ = false;
  bool drained_ = false;
  int dropped_lines_ = 0;
};

}  // namespace bench
