// Which places of one file have a name, in source order: a flat table that is filled once. Programs
// ask each of their files for the same names, and most files have none of a name: a miss costs the
// look at one slot, and the name's hash is worked out once for all files.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace bench::diagnose {

struct HashedName {
  std::string_view text;
  std::uint32_t hash;

  // From whatever a view is made of: a name is asked for as it stands.
  template <std::convertible_to<std::string_view> Text>
  HashedName(const Text& name)  // NOLINT(google-explicit-constructor)
      : text(name), hash(static_cast<std::uint32_t>(std::hash<std::string_view>{}(text))) {}
};

class NameIndex {
 public:
  // The text of the name has to outlive the table. finish() comes after the last one.
  void add(std::string_view name, std::uint32_t place) { added_.push_back({name, place}); }
  void finish();

  std::span<const std::uint32_t> of(const HashedName& name) const {
    if (slots_.empty()) return {};
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = name.hash & mask; slots_[at].entry != kNone; at = (at + 1) & mask) {
      if (slots_[at].hash != name.hash) continue;
      const Entry& entry = entries_[slots_[at].entry];
      if (entry.name == name.text)
        return std::span(places_).subspan(entry.begin, entry.end - entry.begin);
    }
    return {};
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Added {
    std::string_view name;
    std::uint32_t place;
  };
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t entry = kNone;
  };
  struct Entry {
    std::string_view name;
    std::uint32_t begin;
    std::uint32_t end;
  };

  std::uint32_t entry_of(const HashedName& name);

  std::vector<Added> added_;  // until finish()
  std::vector<Slot> slots_;   // a power of two, at most half of them taken
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> places_;
};

}  // namespace bench::diagnose
