#include "diagnose/model/name_index.hpp"

#include <bit>

namespace bench::diagnose {

// The entry of the name, which is made where there is none yet.
std::uint32_t NameIndex::entry_of(const HashedName& name) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = name.hash & mask;
  for (; slots_[at].entry != kNone; at = (at + 1) & mask)
    if (slots_[at].hash == name.hash && entries_[slots_[at].entry].name == name.text)
      return slots_[at].entry;
  slots_[at] = {name.hash, static_cast<std::uint32_t>(entries_.size())};
  entries_.push_back({name.text, 0, 0});
  return slots_[at].entry;
}

void NameIndex::finish() {
  if (added_.empty()) return;
  slots_.resize(std::bit_ceil(2 * added_.size()));
  std::vector<std::uint32_t> entry_of_added;
  entry_of_added.reserve(added_.size());
  for (const Added& each : added_) {
    entry_of_added.push_back(entry_of(each.name));
    ++entries_[entry_of_added.back()].end;  // counts them for now
  }
  std::uint32_t begin = 0;
  for (Entry& entry : entries_) {
    const std::uint32_t count = entry.end;
    entry.begin = entry.end = begin;
    begin += count;
  }
  places_.resize(added_.size());
  for (std::size_t i = 0; i < added_.size(); ++i)
    places_[entries_[entry_of_added[i]].end++] = added_[i].place;
  entries_.shrink_to_fit();
  added_ = {};
  // Many places have the same name: the slots are those of the names alone.
  const std::size_t wanted = std::bit_ceil(2 * entries_.size());
  if (wanted == slots_.size()) return;
  slots_.assign(wanted, Slot{});
  slots_.shrink_to_fit();
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    const HashedName name(entries_[i].name);
    std::size_t at = name.hash & (wanted - 1);
    while (slots_[at].entry != kNone) at = (at + 1) & (wanted - 1);
    slots_[at] = {name.hash, i};
  }
}

}  // namespace bench::diagnose
