#include "scenarios/pitfalls/frameworks/trainer_hooks.hpp"

namespace bench::pitfalls::facts {

bool is_trainer_hook(const Program& program, diagnose::ClassRef cls, std::string_view name) {
  for (const std::string_view hook : {"save_model", "compute_loss", "training_step", "evaluate",
                                      "prediction_step", "create_optimizer"})
    if (name == hook) return cls && program.derives_from(cls, diagnose::Api::hf_trainer);
  return false;
}

}  // namespace bench::pitfalls::facts
