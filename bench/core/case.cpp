#include "bench/core/case.hpp"

#include "bench/core/strategy.hpp"

#include <array>

namespace bench {
namespace {

template <class E>
struct Name {
  E value;
  const char* name;
};

constexpr std::array kStrategies{
    Name<Strategy>{Strategy::single, "single"},
    Name<Strategy>{Strategy::data_parallel, "data_parallel"},
    Name<Strategy>{Strategy::libtorch_data_parallel, "libtorch_data_parallel"},
    Name<Strategy>{Strategy::distributed, "distributed"}};
constexpr std::array kExecutes{Name<Execute>{Execute::numeric, "numeric"},
                               Name<Execute>{Execute::shape, "shape"}};
constexpr std::array kDeviceKinds{Name<DeviceKind>{DeviceKind::cuda, "cuda"},
                                  Name<DeviceKind>{DeviceKind::vgpu, "vgpu"},
                                  Name<DeviceKind>{DeviceKind::cpu, "cpu"}};
constexpr std::array kDataKinds{Name<DataKind>{DataKind::synthetic, "synthetic"},
                                Name<DataKind>{DataKind::fashion_mnist, "fashion_mnist"}};
constexpr std::array kHostProfiles{Name<HostProfile>{HostProfile::cpp, "cpp"},
                                   Name<HostProfile>{HostProfile::python, "python"}};

template <class Table, class E>
const char* name_of(const Table& table, E value) {
  for (const auto& entry : table) {
    if (entry.value == value) return entry.name;
  }
  return "?";
}

template <class E, class Table>
std::optional<E> value_of(const Table& table, const std::string& text) {
  for (const auto& entry : table) {
    if (text == entry.name) return entry.value;
  }
  return std::nullopt;
}

}  // namespace

static_assert(Strategy{} == Strategy::single, "the default of Case::strategy");

const char* strategy_name(Strategy strategy) { return name_of(kStrategies, strategy); }
const char* execute_name(Execute execute) { return name_of(kExecutes, execute); }
const char* device_kind_name(DeviceKind kind) { return name_of(kDeviceKinds, kind); }
const char* data_kind_name(DataKind kind) { return name_of(kDataKinds, kind); }
const char* host_profile_name(HostProfile profile) { return name_of(kHostProfiles, profile); }

std::optional<Strategy> parse_strategy(const std::string& text) {
  if (text == "dp") return Strategy::data_parallel;
  if (text == "ddp") return Strategy::distributed;
  return value_of<Strategy>(kStrategies, text);
}
std::optional<Execute> parse_execute(const std::string& text) {
  return value_of<Execute>(kExecutes, text);
}
std::optional<DeviceKind> parse_device_kind(const std::string& text) {
  return value_of<DeviceKind>(kDeviceKinds, text);
}
std::optional<DataKind> parse_data_kind(const std::string& text) {
  return value_of<DataKind>(kDataKinds, text);
}
std::optional<HostProfile> parse_host_profile(const std::string& text) {
  return value_of<HostProfile>(kHostProfiles, text);
}

int Case::process_count() const { return strategy == Strategy::distributed ? world_size() : 1; }

std::string Case::name() const {
  std::string text = scenario + "/";
  if (pitfall.empty()) {
    text += "model:" + model.name + "/strategy:" + strategy_name(strategy) +
            "/gpus:" + std::to_string(gpus.size()) + "/batch:" + std::to_string(batch);
  } else {
    text += pitfall;
  }
  for (const auto& [key, value] : tags) text += "/" + key + ":" + value;
  return text;
}

}  // namespace bench
