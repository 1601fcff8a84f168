#include "diagnose/driver/source_text.hpp"

#include <iconv.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace bench::diagnose {
namespace {

struct Encoding {
  std::string_view name;  // as iconv knows it
  std::string_view mark;  // the byte order mark, to be left out of the text
  std::size_t unit = 1;   // bytes that are skipped where the input is wrong
};

using namespace std::string_view_literals;

// The longer marks first: that of UTF-32LE begins with that of UTF-16LE.
constexpr Encoding kMarked[] = {{"UTF-32LE", "\xFF\xFE\0\0"sv, 4},
                                {"UTF-32BE", "\0\0\xFE\xFF"sv, 4},
                                {"UTF-16LE", "\xFF\xFE"sv, 2},
                                {"UTF-16BE", "\xFE\xFF"sv, 2}};

constexpr std::size_t kSampleBytes = 512;  // from which UTF-16 and UTF-32 are told without a mark

// ASCII in UTF-16 and UTF-32 has its zero bytes at the same places of every character.
std::optional<Encoding> unmarked(std::string_view bytes) {
  std::array<std::size_t, 4> zeros{};
  const std::size_t sample = std::min(bytes.size(), kSampleBytes) / 4 * 4;
  for (std::size_t i = 0; i < sample; ++i)
    if (bytes[i] == '\0') ++zeros[i % 4];
  const std::size_t most = sample / 4 * 9 / 10;  // of each place, where nearly all are zero
  if (sample == 0 || most == 0) return std::nullopt;
  std::string_view pattern;
  std::array<char, 4> found{};
  for (std::size_t i = 0; i < 4; ++i) {
    found[i] = zeros[i] >= most ? '0' : 'x';
    if (found[i] == 'x' && zeros[i] > sample / 40) return std::nullopt;
  }
  pattern = {found.data(), found.size()};
  if (pattern == "x000") return Encoding{"UTF-32LE", {}, 4};
  if (pattern == "000x") return Encoding{"UTF-32BE", {}, 4};
  if (pattern == "x0x0") return Encoding{"UTF-16LE", {}, 2};
  if (pattern == "0x0x") return Encoding{"UTF-16BE", {}, 2};
  return std::nullopt;
}

// The name in a comment like "-*- coding: latin-1 -*-" of a line; nothing when it has none.
std::string cookie_of(std::string_view line) {
  const std::size_t hash = line.find_first_not_of(" \t\f");
  if (hash == std::string_view::npos || line[hash] != '#') return {};
  constexpr std::string_view kWord = "coding";
  for (std::size_t at = line.find(kWord); at != std::string_view::npos;
       at = line.find(kWord, at + 1)) {
    std::size_t begin = at + kWord.size();
    if (begin >= line.size() || (line[begin] != ':' && line[begin] != '=')) continue;
    begin = line.find_first_not_of(" \t", begin + 1);
    if (begin == std::string_view::npos) return {};
    std::size_t end = begin;
    while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) != 0 ||
                                 std::string_view("-_.").find(line[end]) != std::string_view::npos))
      ++end;
    if (end > begin) return std::string(line.substr(begin, end - begin));
  }
  return {};
}

// Of the first two lines; the second counts only below a comment or an empty line.
std::string declared_encoding(std::string_view text) {
  for (int line = 0; line < 2; ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = text.substr(0, end);
    if (std::string name = cookie_of(content); !name.empty()) return name;
    const std::size_t first = content.find_first_not_of(" \t\f\r");
    if (first != std::string_view::npos && content[first] != '#') return {};
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

// Python's name of an encoding as iconv spells it.
std::string iconv_name(std::string name) {
  for (char& c : name) c = c == '_' ? '-' : static_cast<char>(std::tolower(c));
  const auto is = [&](std::string_view base) {
    return name == base || name.starts_with(std::string(base) + "-");
  };
  if (is("utf-8") || name == "utf8" || name == "ascii" || name == "us-ascii") return "UTF-8";
  if (is("latin-1") || is("iso-8859-1") || is("iso-latin-1") || name == "latin1" || name == "l1")
    return "ISO-8859-1";
  return name;
}

// Wrong input becomes U+FFFD. Nothing when the encoding is not known here.
std::optional<std::string> decoded(std::string_view bytes, const char* encoding, std::size_t unit) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  const iconv_t converter = ::iconv_open("UTF-8", encoding);
  if (converter == reinterpret_cast<iconv_t>(-1)) return std::nullopt;
  std::string out;
  std::array<char, 4096> buffer{};
  auto* from = const_cast<char*>(bytes.data());  // iconv's signature; it does not write there
  std::size_t left = bytes.size();
  while (left > 0) {
    char* to = buffer.data();
    std::size_t room = buffer.size();
    const std::size_t result = ::iconv(converter, &from, &left, &to, &room);
    const int error = errno;
    out.append(buffer.data(), buffer.size() - room);
    if (result != static_cast<std::size_t>(-1) || error == E2BIG) continue;
    out += kReplacement;
    const std::size_t skipped = std::min(unit, left);
    from += skipped;
    left -= skipped;
  }
  ::iconv_close(converter);
  return out;
}

bool is_utf8(std::string_view text) {
  const auto* at = reinterpret_cast<const unsigned char*>(text.data());
  const auto* end = at + text.size();
  while (at < end) {
    std::uint64_t eight = 0;
    if (end - at >= 8) {
      std::memcpy(&eight, at, 8);
      if ((eight & 0x8080808080808080U) == 0) {
        at += 8;
        continue;
      }
    }
    if (*at < 0x80) {
      ++at;
      continue;
    }
    const std::ptrdiff_t length = *at >= 0xF0 ? 4 : *at >= 0xE0 ? 3 : 2;
    if (*at < 0xC2 || *at > 0xF4 || end - at < length) return false;
    for (std::ptrdiff_t i = 1; i < length; ++i)
      if ((at[i] & 0xC0U) != 0x80U) return false;
    const unsigned second = at[1];
    if ((*at == 0xE0 && second < 0xA0) || (*at == 0xED && second > 0x9F) ||
        (*at == 0xF0 && second < 0x90) || (*at == 0xF4 && second > 0x8F))
      return false;
    at += length;
  }
  return true;
}

SourceText wide_text(std::string_view bytes, const Encoding& encoding, FileType type) {
  bytes.remove_prefix(encoding.mark.size());
  const std::string name(encoding.name.substr(0, 6));
  auto text = decoded(bytes, std::string(encoding.name).c_str(), encoding.unit);
  if (!text) return {"", false, "is " + name + ", which cannot be decoded on this machine", false};
  // YAML may be UTF-16; the others may not.
  if (type == FileType::yaml) return {std::move(*text), false, "", true};
  const std::string who = type == FileType::python ? "Python cannot read it" : "save it as UTF-8";
  return {std::move(*text), false, "is " + name + ": " + who, true};
}

// Lines that end in a lone carriage return are lines to Python, but not to the parser.
void end_lines(std::string& text) {
  for (std::size_t at = text.find('\r'); at != std::string::npos; at = text.find('\r', at + 1))
    if (at + 1 == text.size() || text[at + 1] != '\n') text[at] = '\n';
}

void decode_python(SourceText& source) {
  const std::string declared = declared_encoding(source.text);
  const std::string encoding = iconv_name(declared);
  if (!declared.empty() && encoding != "UTF-8") {
    if (auto text = decoded(source.text, encoding.c_str(), 1)) {
      source.same_offsets = *text == source.text;
      source.text = std::move(*text);
    } else {
      source.problem =
          "declares the encoding '" + declared + "', which is not known: read as UTF-8";
    }
  } else if (!is_utf8(source.text)) {
    source.problem =
        "is not UTF-8 and declares no other encoding (# -*- coding: ... -*-): Python 3 refuses it";
  }
  if (source.text.find('\0') != std::string::npos) {
    source.problem = "holds NUL bytes: Python refuses it";
    std::replace(source.text.begin(), source.text.end(), '\0', ' ');
  }
  end_lines(source.text);
}

}  // namespace

SourceText to_source_text(std::string bytes, FileType type) {
  for (const Encoding& encoding : kMarked)
    if (bytes.starts_with(encoding.mark)) return wide_text(bytes, encoding, type);
  if (bytes.find('\0') != std::string::npos)
    if (const auto encoding = unmarked(bytes)) return wide_text(bytes, *encoding, type);
  SourceText source{std::move(bytes), true, "", true};
  if (type == FileType::python) decode_python(source);
  return source;
}

}  // namespace bench::diagnose
