#include "bench/cli/doctor_checks.hpp"

#include "bench/cli/worker_lookup.hpp"
#include "bench/cli/worker_probe.hpp"
#include "bench/core/error.hpp"
#include "bench/core/units.hpp"
#include "bench/plan/devices.hpp"
#include "bench/plan/hardware.hpp"
#include "simulator/machine.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace bench::cli {
namespace {

// Where Debian's dataset-fashion-mnist puts its files; training/data reads the same.
constexpr const char* kFashionMnist = "/usr/share/datasets/fashion-mnist";

struct Context {
  Hardware hardware;
  std::string worker;
};

// The value of the first "key : value" line of a /proc file.
std::string proc_value(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t begin = line.find_first_not_of(" \t:", key.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::uint64_t meminfo_bytes(const std::string& key) {
  const std::string text = proc_value("/proc/meminfo", key);  // "16384 kB"
  return text.empty() ? 0 : std::stoull(text) * kKiB;
}

Diagnosis check_system(const Context&) {
  utsname system{};
  uname(&system);
  return {"system",
          true,
          std::string(system.sysname) + " " + system.release + " " + system.machine,
          {}};
}

Diagnosis check_cpu(const Context&) {
  const std::string model = proc_value("/proc/cpuinfo", "model name");
  return {"CPU",
          true,
          std::to_string(std::thread::hardware_concurrency()) + " threads" +
              (model.empty() ? "" : ", " + model),
          {}};
}

Diagnosis check_memory(const Context&) {
  return {"memory",
          true,
          format_bytes(meminfo_bytes("MemAvailable")) + " available of " +
              format_bytes(meminfo_bytes("MemTotal")),
          {}};
}

Diagnosis check_gpus(const Context& context) {
  const Hardware& hardware = context.hardware;
  Diagnosis diagnosis{"CUDA GPUs", !hardware.gpus.empty(), hardware.unavailable, hardware.notes};
  if (!diagnosis.able) return diagnosis;
  diagnosis.detail = std::to_string(hardware.gpus.size());
  if (!hardware.driver_version.empty()) {
    diagnosis.detail += ", driver " + hardware.driver_version;
    diagnosis.detail += " for CUDA up to " + hardware.cuda_version;
  }
  int index = 0;
  for (const HardwareGpu& gpu : hardware.gpus) {
    std::string line = "GPU " + std::to_string(index++) + ": " + gpu.name;
    if (gpu.memory_bytes > 0) {
      line += ", " + format_bytes(gpu.used_bytes) + " of " + format_bytes(gpu.memory_bytes) +
              " in use, " + std::to_string(gpu.busy_percent) + " % busy";
    }
    diagnosis.further.push_back(line);
  }
  return diagnosis;
}

Diagnosis check_virtual_gpus(const Context&) {
  return {"virtual GPUs",
          true,
          std::to_string(simulator::machine_catalog().size()) +
              " machines in the catalogue (bench list machines)",
          {}};
}

Diagnosis check_worker(const Context& context) {
  Diagnosis diagnosis{"training", true, "", {}};
  try {
    const WorkerProgram program = find_worker(context.worker);
    diagnosis.detail = "worker " + program.path.string();
    const RankReport report = probe_worker(program);
    for (const auto& [name, value] : report.facts) {
      std::string& line = diagnosis.further.emplace_back(name);
      line.append(": ").append(value);
    }
  } catch (const Error& error) {
    diagnosis.able = false;
    diagnosis.detail = error.what();
  }
  return diagnosis;
}

Diagnosis check_fashion_mnist(const Context&) {
  for (const char* file : {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"}) {
    if (access((std::filesystem::path(kFashionMnist) / file).c_str(), R_OK) != 0) {
      return {"Fashion-MNIST",
              false,
              std::string("no ") + file + " in " + kFashionMnist +
                  "; Debian's package dataset-fashion-mnist brings it",
              {}};
    }
  }
  return {"Fashion-MNIST", true, kFashionMnist, {}};
}

// What `bench --scenario ... ` does here when no flag says otherwise.
Diagnosis check_default(const Context& context) {
  const Devices devices = resolve_devices({}, context.hardware);
  if (devices.kind == DeviceKind::cuda)
    return {"by default", true, "measures on " + devices.title, {}};
  return {"by default",
          true,
          "simulates " + devices.machine + " (" + devices.title +
              "): memory and results are exact, times are simulated and labelled so",
          {}};
}

constexpr Diagnosis (*kChecks[])(const Context&) = {
    check_system,       check_cpu,    check_memory,        check_gpus,
    check_virtual_gpus, check_worker, check_fashion_mnist, check_default,
};

}  // namespace

std::vector<Diagnosis> examine_machine(const std::string& worker) {
  const Context context{query_hardware(), worker};
  std::vector<Diagnosis> diagnoses;
  for (const auto check : kChecks) diagnoses.push_back(check(context));
  return diagnoses;
}

}  // namespace bench::cli
