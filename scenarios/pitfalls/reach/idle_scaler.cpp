#include "scenarios/pitfalls/reach/idle_scaler.hpp"

#include "scenarios/pitfalls/reach/as_configured.hpp"
#include "scenarios/pitfalls/reach/as_launched.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

namespace {

// `GradScaler() if cfg.amp else None`, GradScaler(enabled=cfg.amp), by what the config files say.
bool is_off_as_configured(const Program& program, const CallRef& scaler, Ref enabled) {
  if (!may_read_configs(program)) return false;
  if (!passed_by_as_configured(program, scaler.ref()).empty()) return true;
  const auto value = enabled ? value_as_configured(program, enabled) : std::nullopt;
  return value && value->is_false();
}

bool is_idle(const Program& program, const CallRef& scaler) {
  const Ref enabled = scaler.keyword("enabled");
  return (enabled && is_off_as_launched(program, enabled)) ||
         is_off_as_configured(program, scaler, enabled);
}

}  // namespace

std::string no_scaler_switched_on(const Program& program, Ref line) {
  const auto scalers = program.calls_named("GradScaler");
  const bool needs_option = program.under(line, [&](Ref condition, bool holds) {
    return holds && is_off_as_launched(program, condition);
  });
  return !needs_option && !scalers.empty() && program.calls_named("ShardedGradScaler").empty() &&
                 std::all_of(scalers.begin(), scalers.end(),
                             [&](const CallRef& each) { return is_idle(program, each); })
             ? "nothing here switches the scaler on"
             : "";
}

}  // namespace bench::pitfalls::facts
