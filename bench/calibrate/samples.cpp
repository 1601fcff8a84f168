#include "bench/calibrate/samples.hpp"

#include "bench/core/error.hpp"
#include "bench/core/file_text.hpp"

#include <nlohmann/json.hpp>

#include <fstream>

namespace bench {
namespace {

using Json = nlohmann::json;

simulator::DType dtype_of(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(simulator::DType::other); ++i) {
    const auto dtype = static_cast<simulator::DType>(i);
    if (name == simulator::dtype_name(dtype)) return dtype;
  }
  throw UsageError("calibration samples: unknown type '" + name + "'");
}

Json to_json(const OperationSample& s) {
  return {{"name", s.name},
          {"shape", s.shape},
          {"dtype", simulator::dtype_name(s.dtype)},
          {"flops", s.flops},
          {"bytes_read", s.bytes_read},
          {"bytes_written", s.bytes_written},
          {"launches", s.launches},
          {"ns", s.ns},
          {"spread", s.spread}};
}

OperationSample to_operation(const Json& j) {
  OperationSample s;
  s.name = j.at("name");
  s.shape = j.at("shape");
  s.dtype = dtype_of(j.at("dtype"));
  s.flops = j.at("flops");
  s.bytes_read = j.at("bytes_read");
  s.bytes_written = j.at("bytes_written");
  s.launches = j.at("launches");
  s.ns = j.at("ns");
  s.spread = j.at("spread");
  return s;
}

Json to_json(const CalibrationSamples& s) {
  Json j{{"device_kind", s.device_kind},
         {"device_name", s.device_name},
         {"driver", s.driver},
         {"cuda", s.cuda},
         {"torch", s.torch},
         {"compute_capability", s.compute_capability},
         {"memory_bytes", s.memory_bytes},
         {"context_bytes", s.context_bytes},
         {"launch_ns", s.launch_ns},
         {"forward_ns", s.host.forward_ns},
         {"backward_ns", s.host.backward_ns},
         {"convolution_ns", s.host.convolution_ns},
         {"host_to_device", s.copies.host_to_device},
         {"device_to_host", s.copies.device_to_host},
         {"pageable_to_device", s.copies.pageable_to_device},
         {"sockets", s.sockets},
         {"all_reduce", s.all_reduce},
         {"notes", s.notes},
         {"operations", Json::array()},
         {"peers", Json::array()}};
  for (const auto& operation : s.operations) j["operations"].push_back(to_json(operation));
  for (const auto& p : s.peers) {
    j["peers"].push_back({p.from, p.to, p.peer_access, p.gb_per_s});
  }
  return j;
}

CalibrationSamples to_samples(const Json& j) {
  CalibrationSamples s;
  s.device_kind = j.at("device_kind");
  s.device_name = j.at("device_name");
  s.driver = j.at("driver");
  s.cuda = j.at("cuda");
  s.torch = j.at("torch");
  s.compute_capability = j.at("compute_capability");
  s.memory_bytes = j.at("memory_bytes");
  s.context_bytes = j.at("context_bytes");
  s.launch_ns = j.at("launch_ns");
  s.host = {j.at("forward_ns"), j.at("backward_ns"), j.at("convolution_ns")};
  s.copies = {j.at("host_to_device"), j.at("device_to_host"), j.at("pageable_to_device")};
  s.sockets = j.at("sockets").get<std::vector<int>>();
  s.all_reduce = j.at("all_reduce").get<std::vector<std::pair<double, double>>>();
  s.notes = j.at("notes").get<std::vector<std::string>>();
  for (const Json& operation : j.at("operations")) s.operations.push_back(to_operation(operation));
  for (const Json& p : j.at("peers")) s.peers.push_back({p.at(0), p.at(1), p.at(2), p.at(3)});
  return s;
}

}  // namespace

simulator::Operation OperationSample::operation() const {
  simulator::Operation op;
  op.dtype = dtype;
  op.flops = flops;
  op.bytes_read = bytes_read;
  op.bytes_written = bytes_written;
  op.launches = static_cast<std::uint16_t>(launches);
  return op;
}

std::string samples_to_json(const CalibrationSamples& samples) {
  // A device's name may hold anything; what is not UTF-8 is replaced.
  return to_json(samples).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

CalibrationSamples samples_from_json(const std::string& text) {
  try {
    return to_samples(Json::parse(text));
  } catch (const Json::exception& error) {
    throw UsageError(std::string("malformed calibration samples: ") + error.what());
  }
}

CalibrationSamples read_samples(const std::string& path) {
  const std::optional<std::string> text = file_text(path);
  if (!text) throw UsageError(path + ": cannot read these calibration samples");
  try {
    return samples_from_json(*text);
  } catch (const UsageError& error) {
    throw UsageError(path + ": " + error.what());
  }
}

void write_samples(const CalibrationSamples& samples, const std::string& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << samples_to_json(samples);
  file.flush();
  if (!file) throw MachineError(path + ": cannot write the calibration samples");
}

}  // namespace bench
