#include "diagnose/driver/trainer_devices.hpp"

#include <algorithm>
#include <charconv>

namespace bench::diagnose {
namespace {

using Kind = DeviceReading::Kind;
using Type = Value::Type;
using enum LightningVersion;

DeviceReading refused(std::string note) { return {Kind::error, {}, std::move(note)}; }

DeviceReading first(std::int64_t count) {
  constexpr std::int64_t kMost = 1024;  // a job has no more GPUs in one node
  if (count == 0) return {};
  if (count == -1) return {Kind::all, {}, {}};
  if (count < -1)
    return refused("MisconfigurationException: GPUs requested but none are available");
  DeviceReading out{Kind::gpus, {}, {}};
  for (int i = 0; i < std::min(count, kMost); ++i) out.ids.push_back(i);
  return out;
}

DeviceReading indices(const std::vector<int>& ids, LightningVersion version) {
  if (ids.empty())
    return refused("MisconfigurationException: GPUs requested but none are available");
  std::vector<int> sorted = ids;
  std::sort(sorted.begin(), sorted.end());
  const bool repeated = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  if (repeated && version != up_to_1_4)
    return refused("MisconfigurationException: device indices must be unique");
  if (sorted.front() < 0)
    return refused("MisconfigurationException: the machine has no GPU " +
                   std::to_string(sorted.front()));
  return {Kind::gpus, ids, {}};
}

DeviceReading read_string(const std::string& text, LightningVersion version) {
  const std::string not_a_number = "ValueError: \"" + text + "\" is not a number";
  if (text.find(',') != std::string::npos) {
    std::vector<int> ids;
    for (std::size_t start = 0; start < text.size();) {
      const std::size_t comma = std::min(text.find(',', start), text.size());
      if (comma > start) {
        const auto id = python_integer(std::string_view(text).substr(start, comma - start));
        if (!id) return refused(not_a_number);
        ids.push_back(static_cast<int>(*id));
      }
      start = comma + 1;
    }
    return indices(ids, version);
  }
  const auto count = python_integer(text);
  if (!count) return refused(not_a_number);
  if (text == "-1") return first(-1);
  // Until 1.5 a string of digits was the index of one GPU.
  return version == up_to_1_4 ? indices({static_cast<int>(*count)}, version) : first(*count);
}

DeviceReading read_list(const Value& value, LightningVersion version) {
  std::vector<int> ids;
  for (const Value& item : value.items) {
    if (!item.is_integer()) return refused("TypeError: device indices must be integers");
    ids.push_back(static_cast<int>(item.integer));
  }
  if (ids.empty() && version != up_to_1_4) return {};
  return indices(ids, version);
}

}  // namespace

std::optional<std::int64_t> python_integer(std::string_view text) {
  std::int64_t value = 0;
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

DeviceReading read_devices(const Value& value, LightningVersion version) {
  switch (value.type) {
    case Type::none:
      if (version == from_2_0) return refused("TypeError: devices=None");
      return {};
    case Type::integer:
      return first(value.integer);
    case Type::string:
      return read_string(value.string, version);
    case Type::list:
      return read_list(value, version);
    case Type::boolean:
      return refused(version == from_2_0 ? "TypeError: a boolean is no number of devices"
                                         : "MisconfigurationException: a boolean is no number of "
                                           "devices");
    default:
      return refused("a value this analysis cannot see");
  }
}

}  // namespace bench::diagnose
