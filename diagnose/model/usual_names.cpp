#include "diagnose/model/usual_names.hpp"

#include "diagnose/model/role_names.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>

namespace bench::diagnose {
namespace {

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

// get_x, build_x, and X itself: what gives an x. step_x() and load_x() do something with one.
bool makes(std::string_view name) {
  for (const std::string_view word :
       {"get", "build", "create", "make", "setup", "set_up", "configure", "construct", "init",
        "initialize", "prepare", "choose", "select", "define", "new"})
    if (name.starts_with(word)) return true;
  return false;
}

}  // namespace

bool names_optimizer_maker(std::string_view function, std::string_view given) {
  const std::string name = lowered(function);
  if (has_any(name, {"state", "param", "group", "step", "zero", "sched", "lr", "bayes", "hyper",
                     "search", "prompt"}))
    return false;
  if (name.ends_with("optimizer") || name.ends_with("optimiser"))
    return makes(name) || (function.front() != name.front() &&
                           has_any(lowered(given), {"param", "model", "net", "module"}));
  return makes(name) && (name.ends_with("optim") || name.ends_with("optimizers"));
}

bool is_of_learning_rates(std::string_view name, std::string_view given) {
  const std::string text = lowered(name);
  return text.starts_with("lr") || has_any(text, {"_lr", "learning", "warmup"}) ||
         has_any(lowered(given), {"optim", "opt,", "opt)"});
}

bool names_scheduler_maker(std::string_view function, std::string_view given) {
  const std::string name = lowered(function);
  if (has_any(name, {"noise", "ddpm", "ddim", "diffusion", "euler", "beta", "flow", "state", "step",
                     "timestep", "sampl", "mask", "sigma", "profil"}))
    return false;
  if (name.ends_with("lr_scheduler") || name.ends_with("lrscheduler")) return true;
  return makes(name) && is_of_learning_rates(name, given) &&
         (name.ends_with("scheduler") || name.ends_with("schedule") ||
          name.ends_with("schedule_with_warmup"));
}

bool makes_from_settings(std::string_view function) {
  for (const std::string_view each :
       {"instantiate", "instantiate_from_config", "build_from_cfg", "build_from_config"})
    if (function == each) return true;
  return false;
}

bool names_optimizer(std::string_view settings) {
  const std::string name = lowered(settings);
  return name == "optim" || name.ends_with("optimizer") || name.ends_with("optimizer_cfg");
}

bool names_scheduler(std::string_view settings) {
  const std::string name = lowered(settings);
  return name == "scheduler" || name.ends_with("lr_scheduler") || name == "lr_schedule" ||
         name == "scheduler_cfg";
}

}  // namespace bench::diagnose
