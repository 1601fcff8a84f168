// A gpus or devices value of a Lightning Trainer, as the versions parse it.
#pragma once

#include "diagnose/model/value.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

// Versions that read these arguments alike.
enum class LightningVersion : std::uint8_t { up_to_1_4, at_1_5, at_1_6, from_1_7, from_2_0 };
inline constexpr LightningVersion kLightningVersions[] = {
    LightningVersion::up_to_1_4, LightningVersion::at_1_5, LightningVersion::at_1_6,
    LightningVersion::from_1_7, LightningVersion::from_2_0};

// A devices value alone, as the GPU accelerator of that version parses it.
struct DeviceReading {
  enum class Kind : std::uint8_t { none, gpus, all, error } kind = Kind::none;
  std::vector<int> ids;  // after CUDA_VISIBLE_DEVICES
  std::string note;      // the exception
};
DeviceReading read_devices(const Value& value, LightningVersion version);

// The number that int(text) gives in Python; nothing where it raises.
std::optional<std::int64_t> python_integer(std::string_view text);

}  // namespace bench::diagnose
