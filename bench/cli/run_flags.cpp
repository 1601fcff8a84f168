#include "bench/cli/run_flags.hpp"

#include "bench/core/error.hpp"
#include "bench/plan/gpu_list.hpp"
#include "bench/plan/setting_table.hpp"

#include <charconv>
#include <cmath>
#include <sstream>

namespace bench::cli {
namespace {

double positive_number(const std::string& flag, const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number > 0) ||
      !std::isfinite(number)) {
    throw UsageError(flag + ": expected a number above 0, found '" + text + "'");
  }
  return number;
}

bool switch_value(const std::string& flag, const std::string& text) {
  if (text != "true" && text != "false") {
    throw UsageError(flag + ": expected true or false, found '" + text + "'");
  }
  return text == "true";
}

// A row of this command's own flags: the flag and what its value does.
struct RunFlag {
  Flag flag;
  void (*apply)(RunFlags& run, const std::string& value);
};

constexpr std::string_view kPassPrefix = "--benchmark_";  // Google Benchmark's
constexpr std::string_view kMain = "run";
constexpr std::string_view kDevices = "devices";

constexpr RunFlag kRunFlags[] = {
    {{"--scenario", "NAME|FILE.toml", "what to run: a name of `bench list scenarios`, or a file",
      kMain, "dp_vs_ddp"},
     [](RunFlags& run, const std::string& value) { run.scenario = value; }},
    {{"--out", "DIR", "where results go (default: results/runs/<time>-<scenario>)", kMain, "out"},
     [](RunFlags& run, const std::string& value) { run.out = value; }},
    {{"--resume", "DIR", "continue an interrupted run; its finished cases are kept", kMain, "out"},
     [](RunFlags& run, const std::string& value) { run.resume = value; }},
    {{"--time-out", "SECONDS",
      "longest time of one case before its workers are ended (default: 600)", kMain, "60"},
     [](RunFlags& run, const std::string& value) {
       const double seconds = positive_number("--time-out", value);
       run.case_time_out = std::chrono::milliseconds(std::llround(seconds * 1e3));
     }},
    {{"--select", "PITFALL,...", "scenario pitfalls: only these, ids or names; may be repeated",
      kMain, "missing-set-epoch"},
     [](RunFlags& run, const std::string& value) {
       std::istringstream names(value);
       for (std::string name; std::getline(names, name, ',');) run.select.push_back(name);
     }},
    {{"--dry-run", "", "list the cases and the skips, and start nothing", kMain, "true"},
     [](RunFlags& run, const std::string& value) {
       run.dry_run = switch_value("--dry-run", value);
     }},
    {{"--worker", "PROGRAM", "", kMain, "bench-worker"},
     [](RunFlags& run, const std::string& value) { run.worker = value; }},
    {{"--gpus", "LIST", "devices: 0,1,2,3, or all (also -1), or auto:N for the N least used",
      kDevices, "0,1"},
     [](RunFlags& run, const std::string& value) {
       parse_gpu_list(value);
       run.devices.gpus = value;
     }},
    {{"--machine", "M",
      "simulate a machine: a name of `bench list machines`, 4xv100-sxm2, "
      "2xdgx-a100, or a TOML file",
      kDevices, "4xv100-sxm2"},
     [](RunFlags& run, const std::string& value) { run.devices.machine = value; }},
    {{"--device", "cuda|vgpu|cpu",
      "kind of devices (default: cuda where there are GPUs, else vgpu)", kDevices, "vgpu"},
     [](RunFlags& run, const std::string& value) {
       run.devices.device = parse_device_kind(value);
       if (!run.devices.device) {
         throw UsageError("--device: expected cuda, vgpu or cpu, found '" + value + "'");
       }
     }},
    {{"--measured-single", "MS", "calibrate simulated time: the measured step of one GPU, in ms",
      kDevices, "120.5"},
     [](RunFlags& run, const std::string& value) {
       run.measured_single_ms = positive_number("--measured-single", value);
     }},
};

const RunFlag* find_run_flag(std::string_view name) {
  for (const RunFlag& row : kRunFlags) {
    if (row.flag.name == name) return &row;
  }
  return nullptr;
}

std::string_view heading(std::string_view section) {
  if (section == "sweep") return "sweep (overwrites the scenario)";
  if (section == "ddp") return "DistributedDataParallel";
  return section;
}

// A repeated list flag adds to the list: --model a --model b is --model a,b.
void merge_repeated(std::vector<TypedFlag>& flags, const TypedFlag& typed, bool list) {
  for (TypedFlag& known : flags) {
    if (known.name != typed.name) continue;
    known.value = list ? known.value + "," + typed.value : typed.value;
    return;
  }
  flags.push_back(typed);
}

}  // namespace

const std::vector<Flag>& run_flags() {
  static const std::vector<Flag> rows = [] {
    std::vector<Flag> all;
    for (const RunFlag& row : kRunFlags) all.push_back(row.flag);
    for (const Setting& row : setting_table()) {
      if (row.flag.empty()) continue;
      all.push_back({row.flag, row.placeholder, row.help, heading(row.section), row.example});
    }
    return all;
  }();
  return rows;
}

RunFlags parse_run_flags(const Arguments& arguments) {
  const Typed typed = parse_flags(arguments, run_flags(), "bench", kPassPrefix);
  if (!typed.words.empty()) {
    throw UsageError("unexpected '" + typed.words[0] + "'; expected flags, see bench --help");
  }
  if (!typed.rest.empty()) throw UsageError("unexpected '--'; expected flags, see bench --help");
  if (typed.has("--batch") && typed.has("--batch-per-gpu")) {
    throw UsageError("--batch-per-gpu: expected either this or --batch");
  }
  RunFlags run;
  run.benchmark_flags = typed.passed;
  for (const TypedFlag& flag : typed.flags) {
    if (const RunFlag* row = find_run_flag(flag.name)) {
      row->apply(run, flag.value);
    } else {
      const bool list =
          find_setting_by_flag(flag.name)->list && flag.value != "true" && flag.value != "false";
      merge_repeated(run.settings, flag, list);
    }
  }
  if (run.scenario.empty() && run.resume.empty()) {
    throw UsageError("--scenario: expected a name of `bench list scenarios`, or a TOML file");
  }
  if (!run.out.empty() && !run.resume.empty()) {
    throw UsageError("--resume: continues in its own directory; it cannot go with --out");
  }
  // Form is checked here and now, so that a typing error costs no work.
  Settings scratch;
  apply_settings(run.settings, scratch);
  return run;
}

Arguments merged_arguments(const Arguments& earlier, const Arguments& now) {
  const Typed before = parse_flags(earlier, run_flags(), "bench", kPassPrefix);
  const Typed after = parse_flags(now, run_flags(), "bench", kPassPrefix);
  Arguments merged;
  for (const TypedFlag& flag : before.flags) {
    if (flag.name == "--out" || after.has(flag.name)) continue;
    merged.push_back(flag.name + "=" + flag.value);
  }
  merged.insert(merged.end(), before.passed.begin(), before.passed.end());
  merged.insert(merged.end(), now.begin(), now.end());
  return merged;
}

void apply_settings(const std::vector<TypedFlag>& flags, Settings& settings) {
  for (const TypedFlag& flag : flags) {
    const Setting& setting = *find_setting_by_flag(flag.name);
    try {
      setting.apply(settings, values_from_text(setting, flag.value));
    } catch (const BadValue& bad) {
      throw UsageError(flag.name + ": " + bad.what());
    }
  }
}

}  // namespace bench::cli
