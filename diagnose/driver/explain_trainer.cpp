#include "diagnose/driver/explain_trainer.hpp"

#include "diagnose/driver/trainer_here.hpp"
#include "diagnose/driver/trainer_today.hpp"
#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <array>
#include <functional>

namespace bench::diagnose {
namespace {

namespace trainer = pitfalls::trainer;
using enum LightningVersion;
using Where = TrainerReading::Where;

struct VersionRange {
  const char* first;
  const char* last;
};
// By LightningVersion.
constexpr VersionRange kNames[] = {
    {"1.0", "1.4"}, {"1.5", "1.5"}, {"1.6", "1.6"}, {"1.7", "1.9"}, {"2.0", "2.x"}};

std::string name_of(std::size_t first, std::size_t last) {
  const std::string from = kNames[first].first;
  const std::string to = kNames[last].last;
  if (to == "2.x") return from == "2.0" ? to : from + " to 2.x";
  return from == to ? from : from + " to " + to;
}

// One line for each run of versions that say the same.
std::string by_version(const std::function<std::string(LightningVersion)>& line) {
  constexpr std::size_t kCount = std::size(kLightningVersions);
  std::array<std::string, kCount> lines;
  for (std::size_t i = 0; i < kCount; ++i) lines[i] = line(kLightningVersions[i]);
  std::string out;
  for (std::size_t first = 0; first < kCount;) {
    std::size_t last = first;
    while (last + 1 < kCount && lines[last + 1] == lines[first]) ++last;
    out += "    Lightning " + name_of(first, last) + ": " + lines[first] + "\n";
    first = last + 1;
  }
  return out;
}

std::string listed(const std::vector<int>& ids) {
  std::string out;
  for (const int id : ids) out += (out.empty() ? "" : ", ") + std::to_string(id);
  return out;
}

std::string counted(std::int64_t count, const std::string& noun, const char* plural = "s") {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : plural);
}

std::string devices_of(const TrainerReading& reading) {
  switch (reading.where) {
    case Where::cpu:
      return "the CPU";
    case Where::other:
      return "another accelerator, which is not read here";
    case Where::all_gpus:
      return reading.devices ? "all visible GPUs: " + std::to_string(*reading.devices)
                             : "all visible GPUs";
    case Where::free_gpus:
      return counted(reading.devices.value_or(0), "GPU") + " that accept an allocation";
    case Where::gpus:
      break;
  }
  return (reading.ids.size() == 1 ? "GPU " : "GPUs ") + listed(reading.ids);
}

// The first batch size of a loader, which a reading turns into samples on each device.
std::optional<std::int64_t> loader_batch(const Program& program) {
  for (const CallRef& loader : program.calls(Api::data_loader))
    if (const auto batch = program.integer(loader.argument(1, "batch_size"))) return batch;
  return std::nullopt;
}

std::string batch_of(std::int64_t batch, const TrainerReading& reading) {
  if (!reading.error.empty() || reading.where == Where::other || !reading.devices) return {};
  const std::int64_t devices = *reading.devices;
  if (reading.splits_batch()) {
    const std::int64_t share = (batch + devices - 1) / devices;
    std::string out = "; " + std::string(batch % devices == 0 ? "" : "at most ") +
                      counted(share, "sample") + " on each device (" + reading.strategy +
                      " splits " + std::to_string(batch) + ")";
    if (reading.nodes > 1)
      out += ", " + std::to_string(batch * reading.nodes) + " in all on " +
             std::to_string(reading.nodes) + " nodes";
    return out;
  }
  if (!reading.processes) return {};
  std::string out = "; " + counted(batch, "sample") + " on each device";
  if (*reading.processes > 1) out += ", " + std::to_string(batch * *reading.processes) + " in all";
  return out;
}

// Indices of CUDA_VISIBLE_DEVICES, from a launch line or from the script.
std::vector<int> visible_ids(const Program& program) {
  for (const LaunchLine& launch : program.launches())
    if (const auto text = launch.variable("CUDA_VISIBLE_DEVICES"))
      return parse_visible_devices(*text).ids;
  for (const Module* module : program.modules())
    for (const NodeId node : module->nodes_of(diagnose::Kind::assignment)) {
      const Ref assignment{module, node};
      if (program.environment_name(assignment.child(Field::left)) != "CUDA_VISIBLE_DEVICES")
        continue;
      if (const auto text = program.string(assignment.child(Field::right)))
        return parse_visible_devices(*text).ids;
    }
  return {};
}

std::string place_of(const Program& program, const trainer::Use& use) {
  if (use.call)
    return use.call.module->path() + ":" +
           std::to_string(use.call.module->tree().line_of(use.call.call->node));
  if (use.arguments.empty()) return program.root().path();
  const ConfigEntry& entry = *use.arguments.front().entry;
  return entry.file + ":" + std::to_string(entry.line);
}

// "16-mixed", args.precision (16 by default), cfg.precision (not known here)
std::string spelled(const trainer::Argument& argument) {
  const std::string value = trainer::spelling(argument.value);
  if (!argument.node || (argument.value.known() && !argument.value.is_default)) return value;
  return std::string(argument.node.text()) + " (" +
         (argument.value.known() ? value + " by default" : "not known here") + ")";
}

std::string explain(const Program& program, const trainer::Use& written) {
  TrainerMachine machine;
  machine.visible_gpus = pitfalls::facts::visible_gpus(program);
  machine.interactive = program.is_notebook();
  const trainer::Use use = use_on(program, written, machine);
  const auto batch = loader_batch(program);
  const auto full = [&](const trainer::Use& read, LightningVersion version) {
    const TrainerReading reading = read_trainer(read, version, machine);
    return describe(reading) + (batch ? batch_of(*batch, reading) : "");
  };
  std::string out = place_of(program, use) + ": Trainer\n";
  if (machine.visible_gpus) {
    out += "  visible GPUs: " + std::to_string(*machine.visible_gpus);
    if (const auto ids = visible_ids(program); !ids.empty())
      out += " (CUDA_VISIBLE_DEVICES: index 0 is GPU " + std::to_string(ids.front()) +
             " of the machine; all are " + listed(ids) + ")";
    out += "\n";
  }
  if (use.has_more)
    out += use.call
               ? "  it has ** arguments that cannot be seen\n"
               : "  its defaults may bring arguments of other files, which are not read here\n";
  out += "  devices and processes\n";
  out += by_version([&](LightningVersion version) { return full(use, version); });
  if (const auto* precision = use.find("precision")) {
    out += "  precision=" + spelled(*precision) + "\n";
    if (precision->value.known())
      out += by_version([&](LightningVersion version) {
        const TrainerReading reading = read_trainer(use, version, machine);
        return describe_precision(precision->value, version,
                                  reading.error.empty() && reading.where == Where::cpu);
      });
  }
  const TodaysTrainer today = said_today(use);
  if (today.changes.empty()) return out;
  out += "  for Lightning 2: " + today.call() + "\n";
  if (const std::string read = full(today.use(), from_2_0); !read.starts_with("not known"))
    out += "    " + read + "\n";
  for (const std::string& change : today.changes) out += "    " + change + "\n";
  return out;
}

}  // namespace

std::string describe(const TrainerReading& reading) {
  if (!reading.error.empty()) return reading.error;
  std::string out = devices_of(reading);
  if (reading.where == Where::other) return out;
  if (reading.strategy == "horovod") return out + "; horovodrun sets the processes";
  const std::string nodes =
      reading.nodes > 1 ? ", " + std::to_string(reading.nodes) + " nodes" : std::string();
  if (reading.strategy == "dp") return out + "; 1 process, a thread for each GPU (dp)";
  if (reading.strategy == "ddp2")
    return out + "; " + counted(reading.nodes, "process", "es") + ", one a node (ddp2)";
  out += "; ";
  if (!reading.processes) {
    out += "one process for each GPU";
  } else {
    out += counted(*reading.processes, "process", "es");
  }
  const std::string how = reading.strategy + nodes;
  return how.empty() ? out : out + " (" + how + ")";
}

std::string describe_precision(const Value& value, LightningVersion version, bool on_cpu) {
  const std::string text = value.is_string() ? value.string : trainer::spelling(value);
  const bool is_text = value.is_string();
  const std::string mixed16 = "mixed, float16";
  const std::string mixed_bf16 = "mixed, bfloat16";
  if (text == "32" && (version != up_to_1_4 || !is_text)) return "float32";
  if (text == "64" && (version != up_to_1_4 || !is_text)) return "float64";
  if (version == up_to_1_4) {
    if (text != "16" || is_text) return "NotImplementedError: only 64, 32 and 16";
    return on_cpu ? "MisconfigurationException: mixed precision needs a GPU" : mixed16;
  }
  if (text == "16") return on_cpu ? mixed_bf16 + ", with a warning: float16 needs a GPU" : mixed16;
  if (text == "bf16") return mixed_bf16;
  if (version != from_2_0) return "MisconfigurationException: not a precision of this version";
  if (text == "16-mixed") return on_cpu ? mixed_bf16 + ", with a warning" : mixed16;
  if (text == "bf16-mixed") return mixed_bf16;
  if (text == "32-true") return "float32";
  if (text == "64-true") return "float64";
  if (text == "16-true") return "weights and all in float16";
  if (text == "bf16-true") return "weights and all in bfloat16";
  if (text.starts_with("transformer-engine")) return "float8 by Transformer Engine";
  return "ValueError: not a precision";
}

std::string explain_trainer(const Program& program) {
  std::string out;
  for (const trainer::Use& use : trainer::uses(program)) out += explain(program, use);
  return out;
}

}  // namespace bench::diagnose
