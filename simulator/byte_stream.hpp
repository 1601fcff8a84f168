// Little-endian bytes in and out, with variable-length integers: the encoding under graph_io.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bench::simulator {

class ByteWriter {
 public:
  void unsigned_number(std::uint64_t value);  // LEB128: 7 bits a byte
  void signed_number(std::int64_t value);     // zigzag, then LEB128
  void fixed32(std::uint32_t value);
  void real(double value);  // IEEE 754, 8 bytes
  void text(std::string_view value);
  void raw(std::string_view value) { bytes_.append(value); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Every read checks what is left; a short or malformed input is a UsageError naming the input, the
// offset and what was expected there.
class ByteReader {
 public:
  ByteReader(std::string_view bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  std::uint64_t unsigned_number(const char* what, std::uint64_t max = ~std::uint64_t{0});
  std::int64_t signed_number(const char* what);
  std::int32_t signed_number_32(const char* what);
  std::uint32_t fixed32(const char* what);
  double real(const char* what);  // refuses NaN and infinities
  std::string text(const char* what);
  std::string_view raw(std::size_t size, const char* what);
  // A number of elements of at least `least_size` bytes each: refuses what cannot fit, so that a
  // corrupt count allocates nothing.
  std::size_t count(const char* what, std::size_t least_size);

  std::size_t offset() const { return offset_; }
  std::size_t left() const { return bytes_.size() - offset_; }
  [[noreturn]] void fail(const std::string& message) const;

 private:
  std::uint8_t byte(const char* what);

  std::string_view bytes_;
  std::string name_;
  std::size_t offset_ = 0;
};

}  // namespace bench::simulator
