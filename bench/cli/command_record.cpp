#include "bench/cli/command_record.hpp"

#include "bench/core/error.hpp"

#include <nlohmann/json.hpp>

#include <fstream>

namespace bench::cli {
namespace {

constexpr const char* kFile = "command.json";

}  // namespace

void write_command_record(const std::filesystem::path& directory, const Arguments& arguments) {
  const auto target = directory / kFile;
  const auto temporary = directory / (std::string(kFile) + ".new");
  {
    std::ofstream file(temporary);
    const nlohmann::json record = {{"directory", std::filesystem::current_path().string()},
                                   {"arguments", arguments}};
    file << record.dump(2) << "\n";
    if (!file.flush()) throw MachineError("cannot write '" + temporary.string() + "'");
  }
  std::filesystem::rename(temporary, target);
}

CommandRecord read_command_record(const std::filesystem::path& directory) {
  const auto path = directory / kFile;
  std::ifstream file(path);
  if (!file) {
    throw UsageError("--resume: '" + directory.string() + "' holds no run (no " + kFile + ")");
  }
  try {
    const auto record = nlohmann::json::parse(file);
    return {record.at("directory").get<std::string>(), record.at("arguments").get<Arguments>()};
  } catch (const nlohmann::json::exception& error) {
    throw UsageError("--resume: '" + path.string() + "' is malformed: " + error.what());
  }
}

}  // namespace bench::cli
