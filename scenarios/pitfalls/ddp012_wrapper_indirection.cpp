#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/files/pickled.hpp"
#include "scenarios/pitfalls/frameworks/accelerate_configs.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/attribute_attempt.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/wrappers/holders.hpp"
#include "scenarios/pitfalls/wrappers/mode_of_object.hpp"
#include "scenarios/pitfalls/wrappers/other_libraries.hpp"
#include "scenarios/pitfalls/wrappers/own_wrappers.hpp"
#include "scenarios/pitfalls/wrappers/taken_off.hpp"
#include "scenarios/pitfalls/wrappers/type_tests.hpp"
#include "scenarios/pitfalls/wrappers/wrapped_above.hpp"
#include "scenarios/pitfalls/wrappers/wrapper_names.hpp"
#include "scenarios/pitfalls/wrappers/wrapping_callers.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::NodeId;
using diagnose::Source;
using diagnose::Wrap;
using diagnose::Wrapper;

bool is_wrapper_api(std::string_view name) {
  static constexpr auto kNames =
      std::to_array<std::string_view>({"add_module",
                                       "apply",
                                       "bfloat16",
                                       "buffers",
                                       "children",
                                       "compile",
                                       "cpu",
                                       "cuda",
                                       "device",
                                       "device_ids",
                                       "dim",
                                       "double",
                                       "eval",
                                       "extra_repr",
                                       "find_unused_parameters",
                                       "float",
                                       "forward",
                                       "get_buffer",
                                       "get_extra_state",
                                       "get_parameter",
                                       "get_submodule",
                                       "half",
                                       "ipu",
                                       "join",
                                       "load_checkpoint",  // of DeepSpeed's engine
                                       "load_state_dict",
                                       "logger",
                                       "modules",
                                       "named_buffers",
                                       "named_children",
                                       "named_modules",
                                       "named_parameters",
                                       "no_sync",
                                       "module",
                                       "output_device",
                                       "parameters",
                                       "process_group",
                                       "reducer",
                                       "register_backward_hook",
                                       "register_buffer",
                                       "register_comm_hook",
                                       "register_forward_hook",
                                       "register_forward_pre_hook",
                                       "register_full_backward_hook",
                                       "register_module",
                                       "register_parameter",
                                       "register_state_dict_pre_hook",
                                       "require_backward_grad_sync",
                                       "require_forward_param_sync",
                                       "requires_grad_",
                                       "save_checkpoint",
                                       "scatter",
                                       "gather",
                                       "replicate",
                                       "parallel_apply",
                                       "set_extra_state",
                                       "share_memory",
                                       "state_dict",
                                       "static_graph",
                                       "to",
                                       "to_empty",
                                       "train",
                                       "training",
                                       "type",
                                       "xpu",
                                       "zero_grad",
                                       "src_device_obj",
                                       "is_multi_device_module",
                                       "broadcast_buffers"});
  return name.starts_with("_") || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

namespace {

// for name in ("width", "depth"): one of those, or of what is not written out.
bool may_be_name(const Program& program, Ref name, std::string_view attribute) {
  bool is_written = false;
  bool is_known = true;
  for (const Source& source : program.sources(name)) {
    if (source.ref.kind() == Kind::string) {
      if (quotes(source.ref.text(), attribute)) return true;
      is_written = true;
    } else {
      is_known = is_known && source.how == Source::How::loop_item;  // what the strings stand in
    }
  }
  return !is_written || !is_known;
}

// setattr(model, name, getattr(model.module, name)) of the same model above.
bool copies_from_inside(const Program& program, Ref object, std::string_view attribute) {
  const auto stores = program.calls_named("setattr");
  return std::any_of(stores.begin(), stores.end(), [&](const CallRef& store) {
    const CallRef read = program.as_call(store.positional(2));
    const Ref outer = store.positional(0);
    if (!read || read.call->name != "getattr" ||
        read.positional(0).text() != std::string(outer.text()) + ".module" ||
        !may_be_name(program, store.positional(1), attribute))
      return false;
    const Wrap* wrap = program.wrap_of(outer);
    return program.same_variable(outer, object) ||
           (wrap != nullptr && wrap == program.wrap_of(object));
  });
}

// Attributes the program itself stores on the wrapper, as in model.name = "x".
bool is_stored(const Program& program, Ref object, std::string_view name) {
  if (copies_from_inside(program, object, name)) return true;
  return std::any_of(program.modules().begin(), program.modules().end(), [&](const Module* module) {
    const auto& defs = module->defs_of(name, true);
    return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
      return module->text(module->tree().child(module->defs()[index].target, Field::object)) !=
             "self";
    });
  });
}

// hasattr(model.module, "heads"): it asks what stands inside, and says nothing of the wrapper.
bool asks_below(std::string_view text, Ref use) {
  return facts::contains(text,
                         "hasattr(" + std::string(use.child(Field::object).text()) + ".module,");
}

// if hasattr(model, "heads"): model.heads, which the wrapper does not come to.
bool is_there_then(const Program& program, Ref use, std::string_view attribute) {
  return program.under(use, [&](Ref condition, bool holds) {
    const std::string_view text = condition.text();
    return holds && facts::contains(text, "hasattr(") && quotes(text, attribute) &&
           !asks_below(text, use);
  });
}

// if has_method(model, "update"): model.update(); or a test of how Accelerate distributes:
// if accelerator.distributed_type == DistributedType.XLA: model.tie_weights()
bool is_asked_for(const Program& program, Ref use, std::string_view attribute) {
  return program.under(use, [&](Ref condition, bool holds) {
    const std::string_view text = condition.text();
    // else of `if accelerator:`
    if (!holds && condition.kind() == Kind::identifier && facts::contains(text, "accel"))
      return true;
    return (quotes(text, attribute) && !asks_below(text, use)) ||
           facts::contains(text, "distributed_type") || facts::contains(text, "num_processes");
  });
}

// In __init__, or in what it calls, of a class whose other methods wrap.
bool is_while_made(const Program& program, Ref use, Ref wrapping) {
  const auto owner = program.enclosing_class(use);
  const auto maker = owner ? program.method(owner, "__init__") : diagnose::FunctionRef{};
  const auto here = program.enclosing_function(use);
  if (!maker || !here || !(program.enclosing_class(wrapping) == owner)) return false;
  const auto reached = program.reached({maker.module, maker.function->body});
  const auto is_of_maker = [&](const diagnose::FunctionRef& each) {
    return each == maker || std::find(reached.begin(), reached.end(), each) != reached.end();
  };
  const auto& sites = program.call_sites(here);
  return is_of_maker(here) && !is_of_maker(program.enclosing_function(wrapping)) &&
         (here == maker || std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
            return is_of_maker(program.enclosing_function(site.ref()));
          }));
}

// Used above the line that wraps it, in the same function and outside of loops, or in a function
// that is called above that line only.
bool stands_above(const Program& program, Ref use, Ref object) {
  const Wrap* wrap = program.wrap_of(object);
  if (wrap == nullptr) return false;
  const Ref wrapping = diagnose::made_at(program, wrap->call).ref();
  if (is_while_made(program, use, wrapping)) return true;
  if (program.enclosing_function(use) != program.enclosing_function(wrapping))
    return only_runs_before(program, use, wrapping);
  return wrapping.module == use.module && use.node < wrapping.node && !program.innermost_loop(use);
}

// if torch.cuda.device_count() > 1, `if parallel`, isinstance(model, DataParallel): the program
// tells the wrapper from the model.
bool tells_wrapper(const Program& program, Ref node) {
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    const std::string text = facts::lowered(guard.condition.text());
    return program.is_distributed_flag(guard.condition) || facts::contains(text, "gpu") ||
           facts::contains(text, "parallel") || facts::contains(text, "multi") ||
           facts::contains(text, "module") || facts::contains(text, "isinstance(");
  });
}

// bare = model.module beside bare = model, and no other value for `model`: what stands inside has a
// name of its own, and this one is the wrapper from the first line to the last.
bool takes_model_out(const Module& module, diagnose::FunctionRef function, std::string_view name) {
  bool takes_out = false;
  bool keeps = false;
  for (const diagnose::Def& def : module.defs()) {
    if (def.value == kNoNode || !module.tree().contains(function.function->body, def.target))
      continue;
    if (module.text(def.target) == name) return false;
    const std::string_view value = module.text(def.value);
    const std::string below = std::string(name) + ".module";
    const bool chooses =
        value.starts_with(below + " if ") && value.ends_with(" " + below.substr(0, name.size()));
    takes_out = takes_out || chooses || value == below;
    keeps = keeps || chooses || value == name;
  }
  return takes_out && keeps;
}

// The function of the parameter speaks of what the wrapper holds, or is called in one of the two
// cases alone.
bool knows_wrapper(const Program& program, Ref object) {
  const auto function = program.enclosing_function(object);
  if (!function) return true;  // in a lambda of a class's own level
  const std::string_view text = function.module->text(function.function->node);
  const std::string name(object.text());
  if (takes_model_out(*function.module, function, name)) return false;
  if (facts::contains(text, name + ".module") || facts::contains(text, "(" + name + ", "))
    for (const std::string_view question : {".module", "isinstance(", "hasattr(", "getattr("})
      if (facts::contains(text, question)) return true;
  const auto& sites = program.call_sites(function);
  const auto tells = [&](const CallRef& site) { return tells_wrapper(program, site.ref()); };
  // evaluate(model) below if distributed: raise, where another call hands over the wrapper.
  const bool is_handed_over = std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    const Ref given = facts::argument_for(site, function, object.text());
    return given && !tells(site) && !given.text().ends_with(".module") &&
           program.wrap_of(given) != nullptr;
  });
  return std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    const bool is_bare = is_handed_over && facts::only_without_distribution(program, site.ref());
    return (tells(site) && !is_bare) || facts::is_after_failed_unwrapping(site);
  });
}

// The answers of knows_wrapper, asked for at every use of a parameter.
class KnownWrappers {
 public:
  bool in_function_of(const Program& program, Ref object) {
    const auto key = std::pair(program.enclosing_function(object), object.text());
    const auto found = answers_.find(key);
    if (found != answers_.end()) return found->second;
    return answers_[key] = knows_wrapper(program, object);
  }

 private:
  std::map<std::pair<diagnose::FunctionRef, std::string_view>, bool> answers_;
};

// if args.distributed: model = DDP(model): made in all runs of several processes or GPUs.
bool is_made_for_several(const Program& program, const Wrap& wrap) {
  if (facts::is_made_for_several_gpus(program, wrap)) return true;
  const auto guards = diagnose::guards_where_made(program, wrap.call);
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    return guard.holds && program.is_distributed_flag(guard.condition);
  });
}

// Whatever wraps the model does so in runs of several GPUs or processes alone, and nothing else but
// what it wraps comes this way: in those runs the parameter, or the attribute, is the wrapper.
bool is_wrapped_in_such_runs(const Program& program, Ref object, KnownWrappers& known) {
  if (!facts::is_parameter(program, object) && !object.text().starts_with("self.")) return false;
  std::vector<const Wrap*> wraps;
  std::vector<Source> others;
  for (const Source& source : program.module_sources(object)) {
    if (const Wrap* wrap = program.wrap_made_by(source.ref)) {
      if (!is_made_for_several(program, *wrap) ||
          facts::is_given_to_one_of_several(program, object, *wrap))
        return false;
      wraps.push_back(wrap);
    } else if (source.ref.kind() != Kind::none_literal) {  // which has no attributes at all
      others.push_back(source);
    }
  }
  if (wraps.empty() || facts::visible_gpus(program) == 1 || tells_wrapper(program, object) ||
      (facts::is_parameter(program, object) && known.in_function_of(program, object)) ||
      program.mentions("deepspeed"))  // whose engine hands on attributes, instead of the wrapper
    return false;
  return std::all_of(others.begin(), others.end(), [&](const Source& other) {
    return std::any_of(wraps.begin(), wraps.end(), [&](const Wrap* wrap) {
      const auto& inner = program.module_sources(wrap->module);
      return std::any_of(inner.begin(), inner.end(),
                         [&](const Source& below) { return below.ref == other.ref; });
    });
  });
}

// Each wrapper that the object may be is made in a mode that never comes to the use.
bool is_made_in_another_mode(const Program& program, Ref use, Ref object) {
  bool any = false;
  for (const Source& source : program.module_sources(object))
    if (const Wrap* wrap = program.wrap_made_by(source.ref)) {
      if (!is_wrapped_in_another_mode(program, *wrap, use)) return false;
      any = true;
    }
  return any;
}

}  // namespace

namespace {

// torch.save(model, path) of a model that Accelerate has prepared.
void check_prepared_pickles(const Program& program, Report& report) {
  for (const CallRef& save : program.calls(Api::torch_save))
    if (save.positional(0) && save.positional(0).kind() != Kind::call &&
        preparation_of_model(program, save.positional(0)))
      report
          .at(save.ref(), Confidence::likely,
              "accelerator.prepare() has wrapped what is pickled: on several GPUs loading it needs "
              "a process group")
          .help = "Save accelerator.unwrap_model(model).state_dict().";
}

// DataParallel comes back without a group, but with the ids of its GPUs and around the model.
void tell_of_pickle(const Program& program, const CallRef& save, Ref wrapper, Report& report) {
  const bool ddp = program.is_wrapped(wrapper, Wrapper::ddp);
  Finding& finding = report.at(
      save.ref(), Confidence::certain,
      ddp ? "the wrapper itself is pickled: loading it needs a process group and the same "
            "devices"
          : "DataParallel itself is pickled: what loads it gets the wrapper back, bound to "
            "the GPUs of this run");
  if (!ddp) finding.severity = Severity::warning;
  const bool is_model = wrapper == save.argument(0, "obj");
  finding.help =
      "Save " + (is_model ? "model" : std::string(wrapper.text())) + ".module.state_dict().";
}

// Each save is told of once, for the first wrapper that it pickles.
void check_pickles(const Program& program, Report& report) {
  for (const CallRef& save : program.calls(Api::torch_save))
    for (const Ref object : pickled_by(program, save))
      if (facts::is_surely_wrapped(program, object) ||
          is_wrapped_above(program, save.ref(), object) ||
          is_wrapped_in_one_mode(program, save.ref(), object) ||
          is_wrapped_in_one_branch(program, object, [&](Ref value) {
            return facts::is_surely_wrapped(program, value) ||
                   is_wrapped_above(program, value, value);
          })) {
        tell_of_pickle(program, save, object, report);
        break;
      }
}

// self.net.enable_checkpointing() in __init__, above self.net = accelerator.prepare(self.net).
bool is_above_in_constructor(const Program& program, Ref use, const CallRef& prepare) {
  const auto function = program.enclosing_function(use);
  return function && function.function->name == "__init__" && use.module == prepare.module &&
         use.node < prepare.call->node && program.enclosing_function(prepare.ref()) == function;
}

// model.predict(x) of a model that Accelerate has prepared, told once for each attribute.
void check_prepared_attributes(const Program& program, Report& report) {
  std::vector<std::string> told;
  for (const Module* module : program.modules()) {
    const auto& tree = module->tree();
    for (const NodeId id : module->nodes_of(Kind::attribute)) {
      const Ref use{module, id};
      const Ref attribute = use.child(Field::attribute);
      const Ref object = use.child(Field::object);
      if (!attribute || !is_name_or_kept(object) || is_wrapper_api(attribute.text())) continue;
      const CallRef prepare = preparation_of_wrapper(program, object);
      if (!prepare || is_above_in_constructor(program, use, prepare)) continue;
      if (is_stored(program, object, attribute.text()) || is_tested_for_wrapper(program, use) ||
          is_asked_for(program, use, attribute.text()) || is_attempt(use, attribute.text()) ||
          std::find(told.begin(), told.end(), use.text()) != told.end())
        continue;
      told.emplace_back(use.text());
      Finding& finding = report.at(use, Confidence::likely,
                                   "accelerator.prepare() has wrapped the model: on several GPUs "
                                   "the wrapper has no attribute '" +
                                       std::string(attribute.text()) + "', AttributeError");
      finding.severity = Severity::warning;
      finding.help = "Use accelerator.unwrap_model(" + std::string(object.text()) + ")." +
                     std::string(attribute.text()) + ".";
      if (is_configured_for_deepspeed(program))
        tell_as_note(
            finding,
            "the Accelerate config of its launch lines takes DeepSpeed, whose engine hands "
            "on the attributes of the model");
    }
  }
}

}  // namespace

void check_wrapper_indirection(const Program& program, Report& report) {
  if (program.wraps().empty()) {
    if (program.uses(Api::accelerator)) check_prepared_attributes(program, report);
    check_prepared_pickles(program, report);
    check_trainer_models(program, is_wrapper_api, report);
    check_models_of_hooks(program, is_wrapper_api, report);
    return;
  }
  // What a class of the program that derives from the wrapper adds to it.
  const auto is_its_own = [&](std::string_view name) {
    return is_wrapper_api(name) || has_wrapper_with(program, name);
  };
  check_questions_to_wrapper(program, is_its_own, report);
  check_names_of_parameters(program, report);
  KnownWrappers known;
  const auto& wraps = program.wraps();
  const bool several = std::any_of(wraps.begin(), wraps.end(), [&](const Wrap& wrap) {
    return is_made_for_several(program, wrap);
  });
  const auto holds_wrapper = [&](Ref use, Ref object) {
    return facts::is_surely_wrapped(program, object) ||
           (several && is_wrapped_in_such_runs(program, object, known)) ||
           is_wrapped_above(program, use, object) || is_wrapped_in_one_mode(program, use, object);
  };
  const auto holds_wrapper_surely = [&](Ref use, Ref object) {
    return facts::is_surely_wrapped(program, object) || is_wrapped_above(program, use, object);
  };
  check_stores_on_wrapper(program, is_its_own, holds_wrapper, report);
  for (const Module* module : program.modules()) {
    const auto& tree = module->tree();
    for (const NodeId id : module->nodes_of(Kind::attribute)) {
      const Ref attribute{module, tree.child(id, Field::attribute)};
      const Ref object{module, tree.child(id, Field::object)};
      if (!attribute || !object || !may_hold_wrapper(object)) continue;
      if (is_wrapper_api(attribute.text())) continue;
      if (object.text().ends_with(".module")) continue;  // below the wrapper already
      if ((!holds_wrapper({module, id}, object) &&
           !is_wrapped_in_one_branch(program, object,
                                     [&](Ref value) { return holds_wrapper(value, value); }) &&
           (tells_wrapper(program, {module, id}) ||
            !is_wrapped_by_one_caller(program, {module, id}, object, holds_wrapper_surely) ||
            known.in_function_of(program, object))) ||
          is_stored(program, object, attribute.text()))
        continue;
      if (has_wrapper_with(program, attribute.text(), object) ||
          is_attempt({module, id}, attribute.text()) ||
          is_tested_for_wrapper(program, {module, id}) ||
          is_there_then(program, {module, id}, attribute.text()) ||
          stands_above(program, {module, id}, object) ||
          facts::only_without_distribution(program, {module, id}) ||
          is_of_another_library(program, object) ||
          is_made_in_another_mode(program, {module, id}, object))
        continue;
      Finding& finding =
          report.at({module, id}, Confidence::certain,
                    "the wrapper has no attribute '" + std::string(attribute.text()) +
                        "': AttributeError, it belongs to the wrapped model");
      finding.help =
          "Use " + std::string(object.text()) + ".module." + std::string(attribute.text()) + ".";
    }
  }
  check_pickles(program, report);
}

}  // namespace bench::pitfalls
