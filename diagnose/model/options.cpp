#include "diagnose/model/options.hpp"

#include <algorithm>

namespace bench::diagnose {

std::string attribute_of_option(const CallRef& call) {
  const SyntaxTree& tree = call.module->tree();
  if (const Ref dest = call.keyword("dest"))
    if (auto name = tree.string_value(dest.node)) return *name;
  std::string best;
  for (std::size_t i = 0;; ++i) {
    const Ref at = call.positional(i);
    if (!at) break;
    auto option = tree.string_value(at.node);
    if (!option) continue;
    const bool is_long = option->starts_with("--");
    option->erase(0, option->find_first_not_of('-'));
    std::replace(option->begin(), option->end(), '-', '_');
    if (best.empty() || is_long) best = *option;
    if (is_long) break;
  }
  return best;
}

const std::vector<CallRef>& Program::options_named(std::string_view name) const {
  static const std::vector<CallRef> kNone;
  if (!options_) {
    options_.emplace();
    for (const CallRef& call : calls_named("add_argument"))
      (*options_)[attribute_of_option(call)].push_back(call);
  }
  const auto found = options_->find(name);
  return found == options_->end() ? kNone : found->second;
}

}  // namespace bench::diagnose
