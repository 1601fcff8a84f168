#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/own_gpu.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// A file of settings, or a class of them: what its user is told to edit is no part of the script.
bool is_setting(const Program& program, Ref value) {
  if (!value) return false;
  const std::string& path = value.module->path();
  std::vector<std::string> names{path.substr(path.rfind('/') + 1)};
  if (const auto owner = program.enclosing_class(value); owner) names.emplace_back(owner.cls->name);
  for (const std::string& name : names)
    for (const std::string_view word : {"config", "cfg", "setting", "option", "param", "const"})
      if (facts::contains(facts::lowered(name), word)) return true;
  const bool only_values = value.module->functions().empty() && value.module->classes().empty() &&
                           value.module->calls().empty();
  return only_values && value.module != &program.root();
}

bool comes_from_settings(const Program& program, Ref list) {
  const auto& sources = program.sources(list);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    return is_setting(program, source.ref);
  });
}

// A notebook of Kaggle, whose machine with several GPUs has two.
bool is_for_known_machine(const Program& program, const std::vector<std::int64_t>& list) {
  return list == std::vector<std::int64_t>{0, 1} && facts::speaks_of(program, "/kaggle/");
}

// os.environ["CUDA_VISIBLE_DEVICES"] = "4,5,6,7" of the same script, beside [0, 1, 2, 3]: whoever
// has other GPUs edits that line, and no more than the list says can be seen.
bool goes_with_visible_devices(const Program& program, const std::vector<std::int64_t>& list) {
  const auto set = visible_devices(program);
  if (set.empty()) return false;
  return std::all_of(set.begin(), set.end(), [&](Ref devices) {
    const auto text = program.string(devices);
    return text && diagnose::parse_visible_devices(*text).ids.size() == list.size();
  });
}

// if torch.cuda.device_count() > 1: DataParallel(model, device_ids=[0, 1])
bool is_made_for_as_many(const Program& program, const Wrap& wrap,
                         const std::vector<std::int64_t>& list) {
  const std::int64_t highest = *std::max_element(list.begin(), list.end());
  const auto guards = diagnose::guards_where_made(program, wrap.call);
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    std::string text(guard.condition.text());
    if (!guard.holds || facts::contains(text, " or ")) return false;
    std::erase(text, ' ');
    return text.ends_with("device_count()>" + std::to_string(highest)) ||
           text.ends_with("device_count()>=" + std::to_string(highest + 1));
  });
}

}  // namespace

void check_hard_coded_device_list(const Program& program, Report& report) {
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::data_parallel) continue;
    const Ref ids = wrap.call.argument(1, "device_ids");
    if (!ids) continue;
    const auto list = facts::device_ids(program, wrap.call);
    if (list.size() < 2) continue;
    Finding& finding =
        report.at(ids, Confidence::certain,
                  "the list of " + std::to_string(list.size()) +
                      " devices is written into the script: it fails on a machine with fewer GPUs "
                      "and leaves the rest of a larger one idle");
    finding.help =
        "Leave device_ids out, or use list(range(torch.cuda.device_count())); choose devices "
        "with CUDA_VISIBLE_DEVICES.";
    if (comes_from_settings(program, ids) || is_for_known_machine(program, list))
      tell_as_note(finding);
    else if (goes_with_visible_devices(program, list))
      tell_as_note(finding, "the script's CUDA_VISIBLE_DEVICES names as many GPUs");
    else if (facts::visible_gpus(program) != 1 && is_made_for_as_many(program, wrap, list))
      tell_as_note(finding, "it is made only where there are as many GPUs");
  }
}

}  // namespace bench::pitfalls
