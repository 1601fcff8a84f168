#include "scenarios/pitfalls/frameworks/trainer_configs.hpp"

#include "scenarios/pitfalls/frameworks/dropped_keys.hpp"
#include "scenarios/pitfalls/frameworks/trainer_signature.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

namespace bench::pitfalls::trainer {
namespace {

using diagnose::ConfigEntry;

bool is_trainer_key(std::string_view section) {
  static constexpr auto kNames =
      std::to_array<std::string_view>({"trainer", "pl_trainer", "trainer_args", "trainer_kwargs",
                                       "trainer_params", "lightning_trainer"});
  const std::string last = facts::lowered(section.substr(section.rfind('.') + 1));
  return std::find(kNames.begin(), kNames.end(), last) != kNames.end();
}

// lightning.pytorch.Trainer, pytorch_lightning.trainer.trainer.Trainer: one class.
bool is_lightning_trainer(std::string_view target) {
  return (target.starts_with("pytorch_lightning.") || target.starts_with("lightning.")) &&
         target.ends_with(".Trainer");
}

// Hydra's own keys, which the Trainer does not get.
bool is_of_hydra(std::string_view key) {
  return (key.starts_with("_") && key.ends_with("_")) || key == "defaults";
}

using Section = std::pair<std::string_view, std::string_view>;  // file, dotted keys

Section section_of(const ConfigEntry& entry) { return {entry.file, entry.parent()}; }

// What `_target_` says of a section: true for Lightning's Trainer, false for another class.
std::map<Section, bool> targets(const Program& program) {
  std::map<Section, bool> out;
  for (const ConfigEntry& entry : program.configs())
    if (entry.key() == "_target_" && entry.value.is_string())
      out[section_of(entry)] = is_lightning_trainer(entry.value.string);
  return out;
}

// Of the arguments that a Lightning has taken away: the program may know.
bool is_dropped(const Program& program, const std::string& key) {
  const SignatureEntry* entry = find_signature(key);
  return entry != nullptr && entry->removed != kNever && project_drops_key(program, key);
}

}  // namespace

std::vector<Use> uses_in_configs(const Program& program) {
  const std::map<Section, bool> known = targets(program);
  std::vector<Use> out;
  std::map<Section, std::size_t> places;
  for (const ConfigEntry& entry : program.configs()) {
    const Section section = section_of(entry);
    const auto target = known.find(section);
    if (target == known.end() ? !is_trainer_key(section.second) : !target->second) continue;
    const auto [place, is_new] = places.try_emplace(section, out.size());
    if (is_new) out.emplace_back();
    Use& use = out[place->second];
    // What `defaults` takes from other files is not seen here.
    use.has_more = use.has_more || entry.key() == "defaults";
    if (!is_of_hydra(entry.key()) && !is_dropped(program, std::string(entry.key())))
      use.arguments.push_back({std::string(entry.key()), entry.value, {}, &entry});
  }
  return out;
}

}  // namespace bench::pitfalls::trainer
