#include "diagnose/driver/explain_trainer.hpp"

#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/trainer.hpp"

#include <algorithm>
#include <charconv>

namespace bench::diagnose {
namespace {

namespace trainer = pitfalls::trainer;

constexpr std::string_view kVersionNames[] = {"up to 1.4", "1.5 to 1.9", "2.x"};

DeviceReading first(std::int64_t count) {
  DeviceReading out;
  if (count == -1) {
    out.kind = DeviceReading::Kind::all;
  } else if (count < -1) {
    out.kind = DeviceReading::Kind::error;
    out.note = "negative counts other than -1 are refused";
  } else if (count > 0) {
    out.kind = DeviceReading::Kind::gpus;
    for (int i = 0; i < count && i < 1024; ++i) out.ids.push_back(i);
  }
  return out;
}

DeviceReading error(std::string note) { return {DeviceReading::Kind::error, {}, std::move(note)}; }

DeviceReading indices(const std::vector<int>& ids, LightningVersion version) {
  if (ids.empty())
    return version == LightningVersion::from_1_5 ? DeviceReading{}
                                                 : error("an empty list is refused");
  std::vector<int> sorted = ids;
  std::sort(sorted.begin(), sorted.end());
  const bool repeated = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  if (repeated && version != LightningVersion::up_to_1_4) return error("indices must be unique");
  if (sorted.front() < 0) return error("indices must not be negative");
  return {DeviceReading::Kind::gpus, ids, {}};
}

std::optional<int> number(std::string_view text) {
  int value = 0;
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

DeviceReading read_string(const std::string& text, LightningVersion version) {
  if (text == "auto") return first(-1);
  if (text.find(',') != std::string::npos) {
    std::vector<int> ids;
    std::size_t start = 0;
    while (start < text.size()) {
      const std::size_t comma = std::min(text.find(',', start), text.size());
      const auto id = number(std::string_view(text).substr(start, comma - start));
      if (!id) return error("not a list of indices");
      ids.push_back(*id);
      start = comma + 1;
    }
    return indices(ids, version);
  }
  const auto count = number(text);
  if (!count) return error("neither a number nor a list");
  if (*count == -1) return first(-1);
  if (version == LightningVersion::up_to_1_4) return indices({*count}, version);
  if (*count == 0 && version == LightningVersion::from_2_0) return error("0 devices are refused");
  return first(*count);
}

std::string describe(const DeviceReading& reading, std::optional<std::int64_t> visible) {
  switch (reading.kind) {
    case DeviceReading::Kind::cpu:
      return "the CPU, 1 process";
    case DeviceReading::Kind::error:
      return "MisconfigurationException: " + reading.note;
    case DeviceReading::Kind::all:
      return visible ? "all visible GPUs: " + std::to_string(*visible) : "all visible GPUs";
    case DeviceReading::Kind::gpus:
      break;
  }
  std::string out = reading.ids.size() == 1 ? "GPU " : "GPUs ";
  for (std::size_t i = 0; i < reading.ids.size(); ++i)
    out += (i == 0 ? "" : ", ") + std::to_string(reading.ids[i]);
  const auto highest = *std::max_element(reading.ids.begin(), reading.ids.end());
  if (visible && highest >= *visible) out += " (but only " + std::to_string(*visible) + " visible)";
  return out;
}

std::string strategy_name(const trainer::Use& use) {
  for (const char* name : {"strategy", "distributed_backend"})
    if (const auto* argument = use.find(name); argument && argument->value.is_string())
      return argument->value.string;
  const auto* accelerator = use.find("accelerator");
  if (accelerator && accelerator->value.is_string() &&
      (accelerator->value.string.starts_with("ddp") || accelerator->value.string == "dp"))
    return accelerator->value.string;
  return {};
}

std::string processes(const DeviceReading& reading, const trainer::Use& use,
                      std::optional<std::int64_t> visible) {
  const std::string strategy = strategy_name(use);
  std::optional<std::int64_t> devices = static_cast<std::int64_t>(reading.ids.size());
  if (reading.kind == DeviceReading::Kind::all) devices = visible;
  if (reading.kind == DeviceReading::Kind::cpu || reading.kind == DeviceReading::Kind::error)
    return {};
  if (strategy == "dp") return "1 process, a thread for each GPU";
  const auto* nodes = use.find("num_nodes");
  const std::int64_t count = nodes && nodes->value.is_integer() ? nodes->value.integer : 1;
  const std::string how = strategy.empty() ? "the default strategy" : strategy;
  if (!devices) return "one process for each GPU (" + how + ")";
  return std::to_string(*devices * count) + (*devices * count == 1 ? " process" : " processes") +
         " (" + how + (count > 1 ? ", " + std::to_string(count) + " nodes" : "") + ")";
}

// The batch of one device: dp splits the loader's batch, everything else gives it to each process.
std::string per_device_batch(const Program& program, const trainer::Use& use,
                             const DeviceReading& reading) {
  for (const CallRef& loader : program.calls(Api::data_loader)) {
    const auto batch = program.integer(loader.argument(1, "batch_size"));
    if (!batch) continue;
    const auto devices = static_cast<std::int64_t>(std::max<std::size_t>(1, reading.ids.size()));
    if (strategy_name(use) == "dp")
      return std::to_string((*batch + devices - 1) / devices) +
             " samples on each device (dp splits " + std::to_string(*batch) + ")";
    return std::to_string(*batch) + " samples on each device, " + std::to_string(*batch * devices) +
           " in all on a node";
  }
  return {};
}

}  // namespace

DeviceReading read_devices(const Value& value, LightningVersion version) {
  using Type = Value::Type;
  switch (value.type) {
    case Type::none:
      if (version == LightningVersion::from_2_0)
        return error("None is refused; leave devices out for all visible GPUs");
      return {};
    case Type::integer:
      if (value.integer == 0 && version == LightningVersion::from_2_0)
        return error("0 devices are refused; use accelerator=\"cpu\"");
      return first(value.integer);
    case Type::string:
      return read_string(value.string, version);
    case Type::list: {
      std::vector<int> ids;
      for (const Value& item : value.items) {
        if (!item.is_integer()) return error("not a list of indices");
        ids.push_back(static_cast<int>(item.integer));
      }
      return indices(ids, version);
    }
    case Type::boolean:
      return error("True and False are refused");
    default:
      return error("a value this analysis cannot see");
  }
}

std::string explain_trainer(const Program& program) {
  const auto visible = pitfalls::facts::visible_gpus(program);
  std::string out;
  for (const trainer::Use& use : trainer::uses(program)) {
    const std::string where =
        use.call ? use.call.module->path() + ":" +
                       std::to_string(use.call.module->tree().line_of(use.call.call->node))
        : use.arguments.empty() ? program.root().path()
                                : use.arguments.front().entry->file + ":" +
                                      std::to_string(use.arguments.front().entry->line);
    out += where + ": Trainer\n";
    if (visible) out += "  visible GPUs: " + std::to_string(*visible) + "\n";
    for (const char* name : {"gpus", "devices"}) {
      const auto* argument = use.find(name);
      if (argument == nullptr) continue;
      out += "  " + std::string(name) + "=" + trainer::spelling(argument->value) + "\n";
      for (std::size_t i = 0; i < std::size(kVersionNames); ++i) {
        const auto version = static_cast<LightningVersion>(i);
        const bool is_gpus = std::string_view(name) == "gpus";
        if (!is_gpus && version == LightningVersion::up_to_1_4) continue;
        const DeviceReading reading = read_devices(argument->value, version);
        out += "    Lightning " + std::string(kVersionNames[i]) + ": ";
        if (is_gpus && version == LightningVersion::from_2_0) {
          out += "TypeError: gpus was removed\n";
          continue;
        }
        out += describe(reading, visible);
        if (const std::string many = processes(reading, use, visible); !many.empty())
          out += "; " + many;
        if (const std::string batch = per_device_batch(program, use, reading); !batch.empty())
          out += "; " + batch;
        out += "\n";
      }
    }
    if (use.find("gpus") == nullptr && use.find("devices") == nullptr)
      out += "  devices not given: Lightning 2.x takes all visible GPUs, 1.x the CPU\n";
    for (const trainer::Argument& argument : use.arguments)
      if (argument.name != "gpus" && argument.name != "devices")
        out += "  " + argument.name + "=" + trainer::spelling(argument.value) + "\n";
  }
  return out.empty() ? "no Lightning Trainer found\n" : out;
}

}  // namespace bench::diagnose
