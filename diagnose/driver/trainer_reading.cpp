#include "diagnose/driver/trainer_reading.hpp"

#include "scenarios/pitfalls/frameworks/trainer_signature.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace bench::diagnose {
namespace {

namespace trainer = pitfalls::trainer;
using Where = TrainerReading::Where;
using Kind = DeviceReading::Kind;
using Type = Value::Type;
using enum LightningVersion;

template <std::size_t N>
bool one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// --- one version's Trainer

struct Request {
  const trainer::Use& use;
  LightningVersion version;
  TrainerMachine machine;

  const Value* value(std::string_view name) const {
    const auto* argument = use.find(name);
    return argument != nullptr && argument->value.type != Type::none ? &argument->value : nullptr;
  }
  std::string text(std::string_view name) const {
    const Value* given = value(name);
    return given != nullptr && given->is_string() ? given->string : std::string();
  }
  std::int64_t integer(std::string_view name, std::int64_t missing) const {
    const Value* given = value(name);
    return given != nullptr && given->is_integer() ? given->integer : missing;
  }
  bool truth(std::string_view name) const {
    const Value* given = value(name);
    return given != nullptr && given->is_true();
  }
};

bool is_auto(const Value& value) { return value.is_string() && value.string == "auto"; }

TrainerReading failure(std::string error) {
  TrainerReading out;
  out.error = std::move(error);
  return out;
}

TrainerReading misconfigured(const std::string& what) {
  return failure("MisconfigurationException: " + what);
}

// The last release that reads arguments in the version's way.
int latest_of(LightningVersion version) {
  constexpr int kLatest[] = {104, 105, 106, 109, 200};
  return kLatest[static_cast<std::size_t>(version)];
}

// The exceptions of arguments that this version's signature lacks.
std::string unexpected_argument(const Request& request) {
  for (const trainer::Argument& argument : request.use.arguments)
    if (!trainer::accepts(argument.name, latest_of(request.version)))
      return "TypeError: unexpected keyword argument '" + argument.name + "'";
  return {};
}

// The arguments that decide and have no value here: "devices=args.gpus".
std::string not_known(const Request& request) {
  std::string out;
  for (const char* name :
       {"gpus", "devices", "accelerator", "strategy", "distributed_backend", "num_nodes"}) {
    const auto* argument = request.use.find(name);
    if (argument == nullptr || argument->value.known()) continue;
    const std::string text = argument->node ? std::string(argument->node.text()) : "...";
    out += (out.empty() ? "" : ", ") + std::string(name) + "=" +
           (text.find('\n') == std::string::npos ? text : "...");
  }
  return out;
}

// Puts a reading of GPUs into the answer; checks them against what is visible.
bool place(const DeviceReading& reading, const Request& request, TrainerReading& out) {
  const auto visible = request.machine.visible_gpus;
  if (reading.kind == Kind::error) {
    out = failure(reading.note);
    return false;
  }
  if (reading.kind == Kind::none) return true;
  if (visible == 0) {
    out = misconfigured("no GPU is visible");
    return false;
  }
  if (reading.kind == Kind::all) {
    out.where = Where::all_gpus;
    out.devices = visible;
    return true;
  }
  for (const int id : reading.ids)
    if (visible && id >= *visible) {
      out = misconfigured("GPU " + std::to_string(id) + " is requested, but only " +
                          std::to_string(*visible) + " visible");
      return false;
    }
  out.where = Where::gpus;
  out.ids = reading.ids;
  out.devices = static_cast<std::int64_t>(reading.ids.size());
  return true;
}

// auto_select_gpus replaces a count by as many GPUs on which an allocation succeeds.
void pick_free(const Request& request, const Value* devices, TrainerReading& out) {
  if (request.truth("auto_select_gpus") && devices != nullptr && devices->is_integer() &&
      out.where == Where::gpus)
    out.where = Where::free_gpus;
}

constexpr auto kInteractive = std::to_array<std::string_view>(
    {"", "dp", "ddp_spawn", "ddp_sharded_spawn", "ddp_fork", "ddp_notebook",
     "ddp_spawn_find_unused_parameters_false", "ddp_spawn_find_unused_parameters_true",
     "ddp_notebook_find_unused_parameters_false", "ddp_notebook_find_unused_parameters_true",
     "ddp_fork_find_unused_parameters_false", "ddp_fork_find_unused_parameters_true", "xla",
     "tpu_spawn"});

bool is_known_strategy(std::string_view name, LightningVersion version) {
  if (name.starts_with("deepspeed")) return true;
  static constexpr auto kAlways =
      std::to_array<std::string_view>({"ddp", "ddp_spawn", "ddp_find_unused_parameters_false",
                                       "ddp_spawn_find_unused_parameters_false", "single_device"});
  static constexpr auto kUntil2 = std::to_array<std::string_view>(
      {"dp", "horovod", "ddp_sharded", "ddp_sharded_spawn", "ddp_fully_sharded", "bagua",
       "tpu_spawn", "fsdp", "ddp_sharded_find_unused_parameters_false",
       "ddp_sharded_spawn_find_unused_parameters_false"});
  static constexpr auto kFrom17 = std::to_array<std::string_view>(
      {"ddp_fork", "ddp_notebook", "ddp_fork_find_unused_parameters_false",
       "ddp_notebook_find_unused_parameters_false"});
  static constexpr auto kNative = std::to_array<std::string_view>(
      {"fsdp_native", "fsdp_native_full_shard_offload", "colossalai", "hivemind"});
  static constexpr auto kFrom2 = std::to_array<std::string_view>(
      {"fsdp", "fsdp_cpu_offload", "xla", "single_xla", "xla_debug",
       "ddp_find_unused_parameters_true", "ddp_spawn_find_unused_parameters_true",
       "ddp_fork_find_unused_parameters_true", "ddp_notebook_find_unused_parameters_true"});
  if (one_of(name, kAlways)) return true;
  if (version == from_2_0) return one_of(name, kFrom17) || one_of(name, kFrom2);
  if (version == from_1_7 && (one_of(name, kFrom17) || one_of(name, kNative))) return true;
  return (name == "ddp2" && version != from_1_7) || one_of(name, kUntil2);
}

// What is left once devices and strategy are decided: the number of processes.
TrainerReading with_processes(TrainerReading out, const Request& request,
                              std::int64_t cpu_processes) {
  if (request.machine.interactive && !one_of(out.strategy, kInteractive))
    return misconfigured("strategy \"" + out.strategy + "\" cannot start in a notebook");
  if (out.where == Where::cpu && out.strategy != "horovod")
    out.devices = out.strategy.empty() ? 1 : cpu_processes;
  if (out.strategy.empty()) {
    if (out.devices == 1 || !out.devices) out.processes = 1;
    return out;
  }
  if (out.strategy == "dp") {
    out.processes = 1;
  } else if (out.strategy == "ddp2") {
    out.processes = out.nodes;
  } else if (out.devices && out.strategy != "horovod") {
    out.processes = *out.devices * out.nodes;
  }
  return out;
}

// Up to 1.5: `gpus` decides the devices, one name (of accelerator, or of strategy) the rest.
class LegacyReader {
 public:
  explicit LegacyReader(const Request& request) : request_(request) {}

  TrainerReading read() {
    accelerator_ = request_.text("accelerator");
    std::string backend = request_.version == up_to_1_4 ? request_.text("distributed_backend")
                                                        : request_.text("strategy");
    const bool names_device = one_of(accelerator_, kDevices);
    if (request_.version == at_1_5 && !backend.empty() && !accelerator_.empty() && !names_device)
      return misconfigured("both strategy and accelerator name a strategy");
    if (request_.version == at_1_5 && backend == "ddp_cpu")
      return misconfigured("strategy=\"ddp_cpu\" is not a strategy; accelerator=\"cpu\" is meant");
    if (backend.empty() && !names_device) backend = accelerator_;
    if (request_.value("devices") != nullptr && !names_device)
      return misconfigured("devices without accelerator=\"gpu\", \"cpu\", \"auto\" ...");
    if (accelerator_ == "tpu" || accelerator_ == "ipu" || request_.value("tpu_cores") != nullptr) {
      TrainerReading out;
      out.where = Where::other;
      return out;
    }
    TrainerReading out;
    if (!choose_devices(out)) return out;
    return choose_strategy(std::move(out), backend);
  }

 private:
  static constexpr auto kDevices =
      std::to_array<std::string_view>({"auto", "gpu", "cpu", "tpu", "ipu"});

  bool choose_devices(TrainerReading& out) {
    const Value* gpus = request_.value("gpus");
    const Value* given = gpus;
    processes_ = request_.integer("num_processes", 1);
    out.nodes = request_.integer("num_nodes", 1);
    if (gpus != nullptr && gpus->is_integer() && gpus->integer == 0 &&
        request_.truth("auto_select_gpus")) {
      out = misconfigured("auto_select_gpus=True with gpus=0");
      return false;
    }
    if (gpus != nullptr && !place(read_devices(*gpus, request_.version), request_, out))
      return false;
    const Value* devices = request_.value("devices");
    if (out.where == Where::cpu && devices != nullptr &&
        (accelerator_ == "gpu" || (accelerator_ == "auto" && request_.machine.visible_gpus != 0))) {
      const bool all = request_.version == at_1_5 && is_auto(*devices);
      const DeviceReading reading =
          all ? DeviceReading{Kind::all, {}, {}} : read_devices(*devices, request_.version);
      if (!place(reading, request_, out)) return false;
      given = devices;
    }
    if (given == gpus) pick_free(request_, gpus, out);
    if (accelerator_ == "gpu" && out.where == Where::cpu) {
      out = misconfigured("accelerator=\"gpu\" without a number of GPUs");
      return false;
    }
    if (accelerator_ == "cpu") {
      out.where = Where::cpu;
      const bool one = devices != nullptr && request_.version == at_1_5 && is_auto(*devices);
      if (devices != nullptr && processes_ == 1 && !one) {
        if (!devices->is_integer()) {
          out = misconfigured("devices must be a number for accelerator=\"cpu\"");
          return false;
        }
        processes_ = devices->integer;
      }
    }
    return true;
  }

  TrainerReading choose_strategy(TrainerReading out, const std::string& backend) {
    const bool on_cpu = accelerator_ == "cpu" || backend == "ddp_cpu";
    if (backend == "ddp_cpu") out.where = Where::cpu;
    if (out.where == Where::cpu) {
      out.ids.clear();
      out.devices.reset();
    }
    const std::int64_t gpus =
        out.where == Where::cpu ? 0 : out.devices.value_or(2);  // "all" is taken to be several
    if (backend.empty()) {
      if (gpus == 0 && out.nodes > 1) out.strategy = "ddp";
      if (gpus == 0 && out.nodes <= 1 && processes_ > 1) out.strategy = "ddp_spawn";
      if (gpus > 1) out.strategy = "ddp_spawn";
    } else if (backend == "ddp_cpu") {
      const bool one_each = processes_ == 1 && out.nodes > 1 && request_.version == at_1_5;
      out.strategy = one_each ? "ddp" : "ddp_spawn";
    } else if (!is_known_strategy(backend, request_.version)) {
      return failure("ValueError: \"" + backend + "\" is no distribution of this version");
    } else {
      out.strategy = backend;
    }
    static constexpr auto kNeedGpus =
        std::to_array<std::string_view>({"dp", "ddp", "ddp_spawn", "ddp2"});
    if (gpus == 0 && one_of(out.strategy, kNeedGpus) && !on_cpu) {
      if (out.nodes <= 1 && processes_ <= 1)
        out.strategy.clear();
      else if (out.strategy == "dp" || out.strategy == "ddp2")
        out.strategy = "ddp";
    }
    if (out.nodes > 1 && (out.strategy.empty() || out.strategy == "dp"))
      return misconfigured("num_nodes > 1 needs a ddp strategy");
    if (out.strategy == "horovod" && (gpus > 1 || out.nodes > 1))
      return misconfigured("horovodrun sets the number of GPUs and nodes");
    return with_processes(std::move(out), request_, processes_);
  }

  const Request& request_;
  std::string accelerator_;
  std::int64_t processes_ = 1;
};

// From 1.6: an accelerator, a devices value for it, and a strategy.
class ModernReader {
 public:
  explicit ModernReader(const Request& request)
      : request_(request), is_2_(request.version == from_2_0) {}

  TrainerReading read() {
    accelerator_ = request_.text("accelerator");
    strategy_ = request_.text("strategy");
    if (auto error = check_names()) return *error;
    TrainerReading out;
    out.nodes = request_.integer("num_nodes", 1);
    if (is_2_ && out.nodes < 1) return failure("ValueError: num_nodes must be positive");
    if (auto error = choose_device_flag()) return *error;
    if (accelerator_ == "tpu" || accelerator_ == "ipu" || accelerator_ == "hpu" ||
        accelerator_ == "mps") {
      out.where = Where::other;
      return out;
    }
    const bool gpu = accelerator_ == "gpu" || accelerator_ == "cuda";
    if (!(gpu ? place_gpus(out) : count_cpu_processes(out))) return out;
    choose_strategy(out, gpu);
    return with_processes(std::move(out), request_, processes_);
  }

 private:
  std::optional<TrainerReading> check_names() {
    static constexpr auto kNames =
        std::to_array<std::string_view>({"", "auto", "cpu", "gpu", "tpu", "hpu", "ipu"});
    const bool named =
        one_of(accelerator_, kNames) ||
        (request_.version != at_1_6 && (accelerator_ == "cuda" || accelerator_ == "mps"));
    if (request_.version == at_1_6 && !named &&
        (accelerator_ == "ddp_cpu" || is_known_strategy(accelerator_, at_1_6))) {
      if (!strategy_.empty() && strategy_ != accelerator_)
        return misconfigured("both strategy and accelerator name a strategy");
      strategy_ = std::exchange(accelerator_, "");
      spelt_as_accelerator_ = true;
    } else if (!named || (is_2_ && accelerator_ == "ipu")) {
      return failure("ValueError: invalid accelerator name \"" + accelerator_ + "\"");
    }
    if (strategy_ == "ddp_cpu" && !spelt_as_accelerator_)
      return is_2_ ? failure("ValueError: invalid strategy name \"ddp_cpu\"")
                   : misconfigured(
                         "strategy=\"ddp_cpu\" is not a strategy; accelerator=\"cpu\" is meant");
    const bool automatic =
        strategy_.empty() || (strategy_ == "auto" && request_.version >= from_1_7);
    if (!automatic && strategy_ != "ddp_cpu" && !is_known_strategy(strategy_, request_.version))
      return failure("ValueError: invalid strategy name \"" + strategy_ + "\"");
    return std::nullopt;
  }

  // The devices value that counts, and the accelerator it is for.
  std::optional<TrainerReading> choose_device_flag() {
    const auto* given = request_.use.find("devices");
    if (given != nullptr && given->value.type == Type::none && is_2_)
      return failure("TypeError: devices=None; leave devices out for all visible GPUs");
    flag_ = request_.value("devices");
    if (flag_ != nullptr && is_zero(*flag_))
      return misconfigured("devices=" + trainer::spelling(*flag_) + " is not a valid number");
    for (const auto& [name, chip] : {std::pair{"num_processes", "cpu"}, std::pair{"gpus", "gpu"},
                                     std::pair{"tpu_cores", "tpu"}, std::pair{"ipus", "ipu"}}) {
      const Value* old = request_.value(name);
      if (old == nullptr || is_zero(*old)) continue;
      flag_ = old;
      if (accelerator_.empty()) accelerator_ = chip;
      break;
    }
    const bool automatic = flag_ != nullptr && is_auto(*flag_);
    if (automatic && accelerator_.empty() && !is_2_)
      return misconfigured("devices=\"auto\" without an accelerator");
    if (automatic) flag_ = nullptr;
    const bool gpus_visible = request_.machine.visible_gpus != 0;
    if (accelerator_ == "auto" || (accelerator_.empty() && is_2_))
      accelerator_ = gpus_visible ? "gpu" : "cpu";
    if (accelerator_.empty()) accelerator_ = "cpu";  // 1.x does not look for GPUs unasked
    if (strategy_ == "ddp_cpu") accelerator_ = "cpu";
    return std::nullopt;
  }

  static bool is_zero(const Value& value) {
    return (value.is_integer() && value.integer == 0) || value.is_false() ||
           (value.is_string() && value.string == "0") ||
           (value.type == Type::list && value.items.empty());
  }

  bool place_gpus(TrainerReading& out) {
    if (flag_ == nullptr) {
      // In a notebook "auto" is one GPU since 2.0, and every one before.
      const bool one = request_.machine.interactive && is_2_;
      return place(one ? DeviceReading{Kind::gpus, {0}, {}} : DeviceReading{Kind::all, {}, {}},
                   request_, out);
    }
    if (!place(read_devices(*flag_, request_.version), request_, out)) return false;
    pick_free(request_, flag_, out);
    return true;
  }

  bool count_cpu_processes(TrainerReading& out) {
    if (flag_ == nullptr) return true;
    const bool is_number = flag_->is_integer() || flag_->is_true();  // True is 1
    const auto count = is_number            ? std::optional<std::int64_t>(flag_->integer)
                       : flag_->is_string() ? python_integer(flag_->string)
                                            : std::nullopt;
    if (!count || *count <= 0) {
      const std::string what = "devices must be a positive number for the CPU";
      out = request_.version >= from_1_7 ? failure("TypeError: " + what) : misconfigured(what);
      return false;
    }
    processes_ = *count;
    return true;
  }

  void choose_strategy(TrainerReading& out, bool gpu) {
    out.strategy = strategy_;
    if (strategy_ == "ddp_cpu") out.strategy = "ddp_spawn";
    if ((strategy_ == "dp" || strategy_ == "ddp2") && !gpu) out.strategy = "ddp";
    if (!strategy_.empty() && strategy_ != "auto") return;
    out.strategy.clear();
    const std::int64_t devices = gpu ? out.devices.value_or(2) : processes_;
    if (out.nodes > 1) {
      out.strategy = "ddp";
    } else if (devices > 1) {
      const bool notebook = request_.machine.interactive && request_.version >= from_1_7;
      out.strategy = notebook ? "ddp_fork" : is_2_ || strategy_ == "auto" ? "ddp" : "ddp_spawn";
    }
  }

  const Request& request_;
  const bool is_2_;
  std::string accelerator_;
  std::string strategy_;
  const Value* flag_ = nullptr;
  std::int64_t processes_ = 1;
  bool spelt_as_accelerator_ = false;
};

}  // namespace

TrainerReading read_trainer(const trainer::Use& use, LightningVersion version,
                            const TrainerMachine& machine) {
  const Request request{use, version, machine};
  if (std::string error = unexpected_argument(request); !error.empty()) return failure(error);
  if (const std::string unknown = not_known(request); !unknown.empty())
    return failure("not known here: " + unknown);
  return version <= at_1_5 ? LegacyReader(request).read() : ModernReader(request).read();
}

}  // namespace bench::diagnose
