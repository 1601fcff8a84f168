#include "diagnose/model/call_names.hpp"

#include "diagnose/model/module.hpp"

#include <unordered_map>

namespace bench::diagnose {

void CallNames::tell_names_apart(const std::vector<Call>& calls) {
  std::unordered_map<std::string_view, std::uint32_t> known;
  for (const Call& call : calls) {
    const auto [at, is_new] =
        known.try_emplace(call.name, static_cast<std::uint32_t>(names_.size()));
    if (is_new) names_.push_back(call.name);
    name_of_.push_back(at->second);
  }
}

const std::vector<std::uint32_t>& CallNames::that(Test says, const std::vector<Call>& calls) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = known_.try_emplace(says);
  if (!is_new) return at->second;
  if (name_of_.empty()) tell_names_apart(calls);
  std::vector<bool> accepted;
  for (const std::string_view name : names_) accepted.push_back(says(name));
  for (std::uint32_t i = 0; i < name_of_.size(); ++i)
    if (accepted[name_of_[i]]) at->second.push_back(i);
  return at->second;
}

}  // namespace bench::diagnose
