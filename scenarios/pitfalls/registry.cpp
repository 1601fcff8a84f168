#include "scenarios/pitfalls/registry.hpp"

#include "scenarios/pitfalls/checks.hpp"

namespace bench::pitfalls {
namespace {

using enum Category;
using enum Severity;
using enum Evidence;

constexpr Rule kRules[] = {
    {"DDP018", "missing-set-epoch", correctness, warning, full, full, check_missing_set_epoch},
};

}  // namespace

std::span<const Rule> all_rules() { return kRules; }

const Rule* find_rule(std::string_view id_or_name) {
  for (const Rule& rule : kRules)
    if (rule.id == id_or_name || rule.name == id_or_name) return &rule;
  return nullptr;
}

}  // namespace bench::pitfalls
