#include "bench/plan/gpu_list.hpp"

#include "bench/core/error.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <string_view>

namespace bench {
namespace {

constexpr const char* kExpected =
    "expected device indices such as 0,1,2,3, or all, or auto:N for the N least used";

std::optional<int> whole_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string existing(const Devices& devices) {
  if (devices.count == 1) return "it has GPU 0 only";
  return "it has GPUs 0 to " + std::to_string(devices.count - 1);
}

void require_device(int index, const Devices& devices) {
  if (index < devices.count) return;
  throw MachineError("--gpus: no GPU " + std::to_string(index) + " on " +
                     (devices.machine.empty() ? devices.title : devices.machine) + "; " +
                     existing(devices));
}

std::vector<int> first_devices(int count) {
  std::vector<int> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

std::string joined(const std::vector<int>& indices) {
  std::string text;
  for (const int index : indices) text += (text.empty() ? "" : ",") + std::to_string(index);
  return text;
}

std::vector<int> least_used(int count, Devices& devices) {
  require_device(count - 1, devices);
  std::vector<int> indices = first_devices(devices.count);
  if (devices.used_bytes.empty()) {
    devices.notes.emplace_back("--gpus auto: nothing else uses these devices; chosen by index");
  } else {
    std::stable_sort(indices.begin(), indices.end(), [&](int a, int b) {
      return devices.used_bytes[static_cast<std::size_t>(a)] <
             devices.used_bytes[static_cast<std::size_t>(b)];
    });
  }
  indices.resize(static_cast<std::size_t>(count));
  std::sort(indices.begin(), indices.end());
  if (!devices.used_bytes.empty()) {
    devices.notes.push_back("--gpus auto: least used are " + joined(indices));
  }
  return indices;
}

}  // namespace

GpuList parse_gpu_list(const std::string& text) {
  GpuList list;
  if (text.empty() || text == "all" || text == "-1") return list;
  if (text.starts_with("auto:")) {
    list.kind = GpuList::Kind::least_used;
    list.count = whole_number(std::string_view(text).substr(5)).value_or(0);
    if (list.count < 1) throw UsageError("--gpus: '" + text + "': " + kExpected);
    return list;
  }
  list.kind = GpuList::Kind::listed;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto index = whole_number(std::string_view(text).substr(begin, end - begin));
    if (!index || *index < 0) throw UsageError("--gpus: '" + text + "': " + kExpected);
    if (std::find(list.indices.begin(), list.indices.end(), *index) != list.indices.end()) {
      throw UsageError("--gpus: GPU " + std::to_string(*index) + " is listed twice in '" + text +
                       "'");
    }
    list.indices.push_back(*index);
    begin = end + 1;
  }
  return list;
}

int gpus_needed(const GpuList& list) {
  if (list.kind == GpuList::Kind::least_used) return list.count;
  if (list.indices.empty()) return 0;
  return *std::max_element(list.indices.begin(), list.indices.end()) + 1;
}

std::vector<int> select_gpus(const std::string& text, Devices& devices) {
  const GpuList list = parse_gpu_list(text);
  switch (list.kind) {
    case GpuList::Kind::all:
      // All processes of a CPU would be all there could be; one is what a CPU is.
      return first_devices(devices.kind == DeviceKind::cpu ? 1 : devices.count);
    case GpuList::Kind::least_used:
      return least_used(list.count, devices);
    case GpuList::Kind::listed:
      for (const int index : list.indices) require_device(index, devices);
      return list.indices;
  }
  return {};
}

}  // namespace bench
