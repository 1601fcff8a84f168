#include "diagnose/driver/trainer_today.hpp"

#include "scenarios/pitfalls/frameworks/trainer_signature.hpp"

#include <algorithm>
#include <array>

namespace bench::diagnose {
namespace {

namespace trainer = pitfalls::trainer;
using Type = Value::Type;

Value string_value(std::string text) {
  Value value;
  value.type = Type::string;
  value.string = std::move(text);
  return value;
}

Value integer_value(std::int64_t number) {
  Value value;
  value.type = Type::integer;
  value.integer = number;
  return value;
}

bool is_zero(const Value& value) {
  return value.type == Type::none || (value.is_integer() && value.integer == 0) ||
         (value.is_string() && value.string == "0") ||
         (value.type == Type::list && value.items.empty());
}

bool is_digits(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// As it is written, but for what is short as a value: an option keeps its name.
std::string source_of(const trainer::Argument& argument) {
  const bool literal = argument.value.known() && !argument.value.is_default;
  if (!argument.node) return argument.value.known() ? trainer::spelling(argument.value) : "...";
  const std::string_view text = argument.node.text();
  const Kind kind = argument.node.kind();
  const bool is_made = kind == Kind::identifier || kind == Kind::attribute ||
                       kind == Kind::subscript || kind == Kind::conditional || kind == Kind::call ||
                       kind == Kind::list;
  if (literal && !is_made) return trainer::spelling(argument.value);
  return text.find('\n') == std::string_view::npos ? std::string(text) : "...";
}

// Python's names of what an accelerator argument once took besides devices.
bool names_strategy(const Value& value) {
  static constexpr auto kDevices =
      std::to_array<std::string_view>({"auto", "cpu", "gpu", "cuda", "mps", "tpu", "ipu", "hpu"});
  return value.is_string() &&
         std::find(kDevices.begin(), kDevices.end(), value.string) == kDevices.end();
}

class Translator {
 public:
  explicit Translator(const trainer::Use& use) : use_(use) {}

  TodaysTrainer translate() {
    for (const trainer::Argument& argument : use_.arguments) translate(argument);
    return std::move(out_);
  }

 private:
  void translate(const trainer::Argument& argument) {
    const std::string& name = argument.name;
    if (name == "gpus") return gpus(argument);
    if (name == "num_processes") return processes(argument);
    if (name == "tpu_cores" || name == "ipus") return other_device(argument);
    if (name == "distributed_backend") return strategy(argument);
    if (name == "strategy") return strategy(argument);
    if (name == "accelerator" && names_strategy(argument.value)) return strategy(argument);
    if (name == "auto_select_gpus") return select(argument);
    if (name == "log_gpu_memory") return memory(argument);
    if (name == "precision") return precision(argument);
    if (name == "replace_sampler_ddp") {
      put("use_distributed_sampler", argument.value, source_of(argument));
      return change(argument, "use_distributed_sampler=" + source_of(argument));
    }
    const trainer::SignatureEntry* entry = trainer::find_signature(name);
    if (entry != nullptr && entry->removed != trainer::kNever)
      return change(argument, std::string(entry->instead));
    put(name, argument.value, source_of(argument));
  }

  void gpus(const trainer::Argument& argument) {
    const Value& value = argument.value;
    if (const auto* devices = use_.find("devices");
        devices != nullptr && devices->value.known() && !is_zero(value))
      drop("devices");
    if (value.known() && is_zero(value)) {
      std::string note = "accelerator=\"cpu\", devices=1";
      if (value.is_string()) note += " (up to 1.4, \"0\" was GPU 0: devices=[0])";
      put("accelerator", string_value("cpu"));
      put("devices", integer_value(1));
      return change(argument, note);
    }
    put("accelerator", string_value("gpu"));
    Value devices = value;
    std::string note;
    if (value.is_string() && (is_digits(value.string) || value.string == "-1")) {
      devices = integer_value(std::strtol(value.string.c_str(), nullptr, 10));
      if (value.string != "-1")
        note = " (up to 1.4 it was the index of one GPU: devices=[" + value.string + "])";
    }
    const bool is_written = devices.known() && !devices.is_default;
    const std::string text = is_written ? trainer::spelling(devices) : source_of(argument);
    if (!selects_) put("devices", devices, text);
    if (!value.known()) note = " (for 0 and None: accelerator=\"cpu\", devices=1)";
    change(argument, "accelerator=\"gpu\", devices=" + text + note);
  }

  void processes(const trainer::Argument& argument) {
    const auto* gpus = use_.find("gpus");
    if (gpus != nullptr && gpus->value.known() && !is_zero(gpus->value))
      return change(argument, "nothing: the number of GPUs decides");
    put("accelerator", string_value("cpu"));
    put("devices", argument.value, source_of(argument));
    change(argument, "accelerator=\"cpu\", devices=" + source_of(argument));
  }

  void other_device(const trainer::Argument& argument) {
    if (argument.value.type == Type::none) return change(argument, "nothing");
    const std::string chip = argument.name == "ipus" ? "ipu" : "tpu";
    put("accelerator", string_value(chip));
    put("devices", argument.value, source_of(argument));
    change(argument, "accelerator=\"" + chip + "\", devices=" + source_of(argument));
  }

  void strategy(const trainer::Argument& argument) {
    const Value& value = argument.value;
    if (value.type == Type::none) {
      if (argument.name != "strategy") return change(argument, "nothing");
      return change(argument, "nothing: the default, \"auto\", is one device or ddp");
    }
    if (value.is_string() && value.string == "ddp_cpu") {
      put("strategy", string_value("ddp_spawn"));
      put("accelerator", string_value("cpu"));
      return change(argument, "strategy=\"ddp_spawn\", accelerator=\"cpu\"");
    }
    std::string note;
    Value today = value;
    if (value.is_string()) {
      if (const auto successor = trainer::strategy_successor(value.string); !successor.empty())
        today.string = successor;
      if (value.string == "dp" || value.string == "ddp2")
        note = "; the loader's batch size is then that of one device, no longer split";
    }
    const std::string text =
        today.string != value.string ? trainer::spelling(today) : source_of(argument);
    put("strategy", today, text);
    if (argument.name != "strategy" || today.string != value.string)
      change(argument, "strategy=" + text + note);
  }

  void select(const trainer::Argument& argument) {
    const auto* gpus = use_.find("gpus");
    if (gpus == nullptr || is_zero(gpus->value)) gpus = use_.find("devices");
    if (!argument.value.is_true()) return change(argument, "nothing");
    if (gpus == nullptr || !gpus->value.is_integer() || gpus->value.integer == 0)
      return change(argument, "nothing: it acts only on a number of GPUs");
    selects_ = true;
    const std::string text =
        "find_usable_cuda_devices(" + std::to_string(gpus->value.integer) + ")";
    put("devices", {}, text);
    change(argument, "devices=" + text + " from lightning.pytorch.accelerators");
  }

  void memory(const trainer::Argument& argument) {
    const Value& value = argument.value;
    if (value.type == Type::none) return change(argument, "nothing: it logged nothing");
    out_.arguments.push_back({"callbacks", {}, "[DeviceStatsMonitor()]"});
    const std::string was = value.is_string() && value.string == "min_max"
                                ? " (min_max logged the least and the most memory of all GPUs "
                                  "by nvidia-smi; the callback logs each)"
                                : " (\"all\" logged the memory of each GPU by nvidia-smi)";
    change(argument, "callbacks=[DeviceStatsMonitor()]" + was);
  }

  void precision(const trainer::Argument& argument) {
    static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
        {"16", "16-mixed"}, {"bf16", "bf16-mixed"}, {"32", "32-true"}, {"64", "64-true"}};
    const std::string given =
        argument.value.is_string() ? argument.value.string : trainer::spelling(argument.value);
    for (const auto& [old, today] : kNames)
      if (given == old && argument.value.is_default) {
        put("precision", argument.value, source_of(argument));
        return change(argument, "the default is \"" + std::string(today) + "\" today");
      } else if (given == old) {
        put("precision", string_value(std::string(today)));
        return change(argument, "precision=\"" + std::string(today) + "\"");
      }
    put("precision", argument.value, source_of(argument));
  }

  void put(const std::string& name, const Value& value, std::string text = {}) {
    if (text.empty()) text = trainer::spelling(value);
    const auto at = std::find_if(out_.arguments.begin(), out_.arguments.end(),
                                 [&](const TodaysArgument& known) { return known.name == name; });
    if (at == out_.arguments.end()) {
      out_.arguments.push_back({name, value, std::move(text)});
    } else {
      *at = {name, value, std::move(text)};
    }
  }

  void drop(std::string_view name) {
    std::erase_if(out_.arguments,
                  [&](const TodaysArgument& argument) { return argument.name == name; });
  }

  void change(const trainer::Argument& argument, std::string today) {
    std::string line = argument.name + "=" + source_of(argument) + " -> " + std::move(today);
    const trainer::SignatureEntry* entry = trainer::find_signature(argument.name);
    if (entry != nullptr && entry->removed != trainer::kNever)
      line += std::string("; removed in ") + trainer::version_text(entry->removed);
    out_.changes.push_back(std::move(line));
  }

  const trainer::Use& use_;
  TodaysTrainer out_;
  bool selects_ = false;
};

}  // namespace

std::string TodaysTrainer::call() const {
  std::string out = "Trainer(";
  for (const TodaysArgument& argument : arguments)
    out += (out.ends_with('(') ? "" : ", ") + argument.name + "=" + argument.text;
  return out + ")";
}

pitfalls::trainer::Use TodaysTrainer::use() const {
  trainer::Use use;
  for (const TodaysArgument& argument : arguments)
    use.arguments.push_back({argument.name, argument.value, {}, nullptr});
  return use;
}

TodaysTrainer said_today(const trainer::Use& use) { return Translator(use).translate(); }

}  // namespace bench::diagnose
