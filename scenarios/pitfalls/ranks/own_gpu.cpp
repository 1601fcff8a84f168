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

namespace {

// srun --gpus-per-task=1, --gpu-bind=single:1: Slurm shows each task a GPU of its own, which is
// GPU 0 to it. Another way of binding, none among them, overrules the first.
bool is_given_one_by_slurm(const diagnose::LaunchLine& launch) {
  if (!launch.is_job_step) return false;
  if (const auto binding = launch.job.find("gpu-bind"); binding != launch.job.end())
    return binding->second.text == "single:1";
  const auto per_task = launch.job.find("gpus-per-task");
  return per_task != launch.job.end() &&
         (per_task->second.text == "1" || per_task->second.text.ends_with(":1"));
}

}  // namespace

bool sees_own_gpu(const Program& program) {
  const auto& launches = program.launches();
  if (!launches.empty() && std::all_of(launches.begin(), launches.end(), is_given_one_by_slurm))
    return true;
  for (const Ref devices : visible_devices(program))
    if (!program.string(devices) && !joins_several(program, devices)) return true;
  return false;
}

}  // namespace bench::pitfalls
