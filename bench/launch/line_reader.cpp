#include "bench/launch/line_reader.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace bench {

void LineReader::take(const char* data, std::size_t size, std::vector<std::string>& lines) {
  while (size > 0) {
    const auto* newline = static_cast<const char*>(std::memchr(data, '\n', size));
    const std::size_t length = newline ? static_cast<std::size_t>(newline - data) : size;
    if (!dropping_) partial_.append(data, length);
    if (partial_.size() > line_bytes_max_) {
      partial_ = std::string();
      dropping_ = true;
      ++dropped_lines_;
    }
    if (newline == nullptr) return;
    if (!dropping_) lines.push_back(std::move(partial_));
    partial_.clear();
    dropping_ = false;
    data += length + 1;
    size -= length + 1;
  }
}

std::vector<std::string> LineReader::read_from(int fd) {
  std::vector<std::string> lines;
  std::array<char, 65536> buffer;
  // Bounded per call: one rank that writes without end must not starve the others.
  drained_ = false;
  for (int round = 0; round < 16 && !closed_; ++round) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got > 0) {
      take(buffer.data(), static_cast<std::size_t>(got), lines);
    } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
      closed_ = true;
    } else if (errno == EAGAIN) {
      drained_ = true;
      break;
    }
  }
  return lines;
}

}  // namespace bench
