#include "scenarios/pitfalls/ranks/own_gpu.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

std::vector<Ref> visible_devices(const Program& program) {
  std::vector<Ref> out;
  for (const Ref set : facts::settings_of(program, "CUDA_VISIBLE_DEVICES"))
    out.push_back(set.child(diagnose::Field::right));
  return out;
}

bool joins_several(const Program& program, Ref devices) {
  const auto& sources = program.sources(devices);
  return std::any_of(sources.begin(), sources.end(), [](const diagnose::Source& source) {
    const std::string_view text = source.ref.text();
    return text.starts_with("','.join(") || text.starts_with("\",\".join(");
  });
}

bool sees_own_gpu(const Program& program) {
  for (const Ref devices : visible_devices(program))
    if (!program.string(devices) && !joins_several(program, devices)) return true;
  return false;
}

}  // namespace bench::pitfalls
