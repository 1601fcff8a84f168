#include "simulator/byte_stream.hpp"

#include "bench/core/error.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace bench::simulator {

void ByteWriter::unsigned_number(std::uint64_t value) {
  while (value >= 0x80) {
    bytes_.push_back(static_cast<char>((value & 0x7f) | 0x80));
    value >>= 7;
  }
  bytes_.push_back(static_cast<char>(value));
}

void ByteWriter::signed_number(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  unsigned_number((bits << 1) ^ (value < 0 ? ~std::uint64_t{0} : 0));
}

void ByteWriter::fixed32(std::uint32_t value) {
  for (int i = 0; i < 4; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
}

void ByteWriter::real(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<char>(bits >> (8 * i)));
}

void ByteWriter::text(std::string_view value) {
  unsigned_number(value.size());
  bytes_.append(value);
}

void ByteReader::fail(const std::string& message) const {
  throw UsageError(name_ + ": offset " + std::to_string(offset_) + ": " + message);
}

std::uint8_t ByteReader::byte(const char* what) {
  if (offset_ >= bytes_.size()) fail(std::string("the file ends inside ") + what);
  return static_cast<std::uint8_t>(bytes_[offset_++]);
}

std::uint64_t ByteReader::unsigned_number(const char* what, std::uint64_t max) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const std::uint8_t next = byte(what);
    const std::uint64_t bits = next & 0x7f;
    if (shift == 63 && bits > 1) break;
    value |= bits << shift;
    if ((next & 0x80) != 0) continue;
    if (value > max) {
      fail(std::string(what) + " is " + std::to_string(value) + ", expected at most " +
           std::to_string(max));
    }
    return value;
  }
  fail(std::string(what) + " is a number of more than 64 bits");
}

std::int64_t ByteReader::signed_number(const char* what) {
  const std::uint64_t bits = unsigned_number(what);
  return static_cast<std::int64_t>((bits >> 1) ^ ((bits & 1) != 0 ? ~std::uint64_t{0} : 0));
}

std::int32_t ByteReader::signed_number_32(const char* what) {
  const std::int64_t value = signed_number(what);
  if (value < std::numeric_limits<std::int32_t>::min() ||
      value > std::numeric_limits<std::int32_t>::max()) {
    fail(std::string(what) + " is " + std::to_string(value) + ", expected 32 bits");
  }
  return static_cast<std::int32_t>(value);
}

std::uint32_t ByteReader::fixed32(const char* what) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= static_cast<std::uint32_t>(byte(what)) << (8 * i);
  return value;
}

double ByteReader::real(const char* what) {
  std::uint64_t bits = 0;
  for (int i = 0; i < 8; ++i) bits |= static_cast<std::uint64_t>(byte(what)) << (8 * i);
  const auto value = std::bit_cast<double>(bits);
  if (!std::isfinite(value)) fail(std::string(what) + " is not a finite number");
  return value;
}

std::string_view ByteReader::raw(std::size_t size, const char* what) {
  if (size > left()) fail(std::string("the file ends inside ") + what);
  const std::string_view part = bytes_.substr(offset_, size);
  offset_ += size;
  return part;
}

std::string ByteReader::text(const char* what) { return std::string(raw(count(what, 1), what)); }

std::size_t ByteReader::count(const char* what, std::size_t least_size) {
  const std::uint64_t value = unsigned_number(what);
  if (value > left() / least_size) {
    fail(std::string(what) + " counts " + std::to_string(value) + " but only " +
         std::to_string(left()) + " bytes follow");
  }
  return static_cast<std::size_t>(value);
}

}  // namespace bench::simulator
