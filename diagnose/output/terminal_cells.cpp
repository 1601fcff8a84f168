#include "diagnose/output/terminal_cells.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace bench::diagnose {
namespace {

struct Range {
  std::uint32_t first, last;
};

constexpr auto kWide = std::to_array<Range>({{0x1100, 0x115F},
                                             {0x2E80, 0xA4CF},
                                             {0xAC00, 0xD7A3},
                                             {0xF900, 0xFAFF},
                                             {0xFE30, 0xFE6F},
                                             {0xFF00, 0xFF60},
                                             {0xFFE0, 0xFFE6},
                                             {0x1F300, 0x1F64F},
                                             {0x1F680, 0x1F6FF},
                                             {0x1F900, 0x1F9FF},
                                             {0x20000, 0x3FFFD}});
constexpr auto kCombining =
    std::to_array<Range>({{0x0300, 0x036F}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}});

template <std::size_t N>
bool within(std::uint32_t character, const std::array<Range, N>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) {
    return character >= range.first && character <= range.last;
  });
}

std::size_t cells(std::uint32_t character) {
  if (within(character, kCombining)) return 0;
  return within(character, kWide) ? 2 : 1;
}

// The character that begins at `at`, which is moved behind it.
std::uint32_t decode(std::string_view line, std::size_t& at) {
  const auto byte = [&] {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(line[at]));
  };
  std::uint32_t character = byte();
  if (character >= 0xF0)
    character &= 0x07U;
  else if (character >= 0xE0)
    character &= 0x0FU;
  else if (character >= 0xC0)
    character &= 0x1FU;
  for (++at; at < line.size() && (byte() & 0xC0U) == 0x80U; ++at)
    character = (character << 6U) | (byte() & 0x3FU);
  return character;
}

}  // namespace

std::size_t cells_of(std::string_view line, std::size_t first, std::size_t last) {
  std::size_t out = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; at < line.size() && i < last; ++i) {
    const std::uint32_t character = decode(line, at);
    if (i >= first) out += cells(character);
  }
  return out;
}

}  // namespace bench::diagnose
