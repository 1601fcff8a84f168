// The keys that checkpoints have now.
#include "diagnose/to_ddp/gpu_flags.hpp"
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "scenarios/pitfalls/files/readers_elsewhere.hpp"
#include "scenarios/pitfalls/files/saved_states.hpp"
#include "scenarios/pitfalls/files/state_keys.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::holds_any;

// DDP(net) if dist.is_initialized() else DataParallel(net)
bool is_of_one_statement(const Wrap& a, const Wrap& b) {
  return pitfalls::statement_of(a.call.ref()) == pitfalls::statement_of(b.call.ref());
}

// torch.cuda.device_count() > 1, which a step leaves: on one GPU there is no wrapper still.
bool is_left_out_on_one_gpu(const Program& program, const Wrap& wrap) {
  return program.under(wrap.call.ref(), [&](Ref condition, bool) {
    return holds_any(pitfalls::text_behind(program, condition), {"device_count"});
  });
}

// if dist.is_initialized(): a step has put this in the place of a question for GPUs. A wrapper in
// the other branch was there for one GPU.
bool was_made_on_several_gpus(const Program& program, const Wrap& wrap) {
  const auto guards = program.guards(wrap.call.ref());
  const auto& wraps = program.wraps();
  return std::any_of(guards.begin(), guards.end(),
                     [&](const Guard& guard) {
                       const auto& tree = guard.condition.module->tree();
                       return tree[tree[guard.condition.node].parent].kind != Kind::conditional &&
                              asks_for_group(program, guard.condition);
                     }) &&
         !is_left_out_on_one_gpu(program, wrap) &&
         std::none_of(wraps.begin(), wraps.end(), [&](const Wrap& other) {
           return other.kind == Wrapper::data_parallel && !is_of_one_statement(other, wrap) &&
                  pitfalls::facts::exclusive(other.call.ref(), wrap.call.ref()) &&
                  program.assigned_name(other.call.ref()) == program.assigned_name(wrap.call.ref());
         });
}

// if isinstance(model, DataParallel): save(model.module.state_dict()), else: save(...); also by an
// option of the script's own.
bool asks_for_wrapper(const Program& program, Ref state, Ref model) {
  if (state.module->tree().holds(std::string(model.text()) + ".module.state_dict(")) return true;
  const auto guards = program.guards(state);
  return std::any_of(guards.begin(), guards.end(), [](const Guard& guard) {
    return holds_any(guard.condition.text(), {"module", "isinstance", "Parallel"});
  });
}

// model of model.module in the part; empty where there is none.
Ref behind_wrapper(Ref part) {
  if (!part) return {};
  const auto& tree = part.module->tree();
  for (NodeId at = part.node; at < tree[part.node].last; ++at)
    if (tree[at].kind == Kind::attribute &&
        part.with(at).child(Field::attribute).text() == "module")
      return part.with(at).child(Field::object);
  return {};
}

// A question for GPUs, and not for the wrapper or the group.
bool asks_for_gpus(const Program& program, Ref condition) {
  const std::string text = pitfalls::facts::lowered(condition.text());
  return holds_any(text, {"gpu", "device_count", "parallel"}) &&
         !holds_any(text, {"isinstance", "hasattr", "type(", "__name__", "__class__", "use_gpu",
                           "is_available", "dataparallel"}) &&
         !asks_for_group(program, condition) &&
         !(condition.kind() == Kind::not_expression &&
           asks_for_group(program, condition.child(Field::argument)));
}

// model.module.state_dict() if args.n_gpu > 1 else model.state_dict(), in whichever order, and the
// same in an if statement: the model whose wrapper it asks for by the number of GPUs.
Ref asked_by_gpus(const Program& program, Ref condition, Ref first, Ref second) {
  if (!condition || !asks_for_gpus(program, condition)) return {};
  const Ref a = behind_wrapper(first);
  const Ref b = behind_wrapper(second);
  if (static_cast<bool>(a) == static_cast<bool>(b)) return {};
  const Ref model = a ? a : b;
  const Ref other = a ? second : first;
  return !other || pitfalls::facts::contains(other.text(), model.text()) ? model : Ref{};
}

// Every run wraps the model, and the condition does not tell.
bool is_old_question(const Program& program, Ref condition, Ref model) {
  const Wrap* wrap = program.wrap_of(model, Wrapper::ddp);
  return wrap != nullptr && was_made_on_several_gpus(program, *wrap) &&
         !follows_wrapper(program, condition, *wrap);
}

// The wrappers of models whose states the program takes, those behind `.module` too.
std::vector<const Wrap*> saved_wraps(const Program& program) {
  std::vector<const Wrap*> out;
  const auto add = [&](Ref object) {
    if (object) out.push_back(program.wrap_of(object));
    if (const Ref whole = behind_wrapper(object)) out.push_back(program.wrap_of(whole));
  };
  for (const CallRef& state : program.calls_named("state_dict")) {
    if (!state.receiver()) continue;
    add(state.receiver());
    for (const Source& source : program.sources(state.receiver())) add(source.ref);
  }
  return out;
}

// torch.load(path)["state"], or a name of it.
bool is_from_file(const Program& program, const CallRef& load) {
  const Ref state = load.positional(0);
  if (!state) return false;
  const auto behind = pitfalls::facts::calls_behind(program, state);
  return std::any_of(behind.begin(), behind.end(), [&](Ref each) {
    const CallRef call = program.as_call(each);
    return call && call.call->api == Api::torch_load;
  });
}

// CheckpointIO(folder, model=model) of a class of the program that takes states: the program writes
// the file of this model itself, wherever the class keeps it.
bool is_saved_by_own_class(const Program& program, const Wrap& wrap) {
  const auto modules = program.modules();
  return std::any_of(modules.begin(), modules.end(), [&](const Module* module) {
    const auto& calls = module->calls();
    return std::any_of(calls.begin(), calls.end(), [&](const Call& made) {
      const CallRef call{module, &made};
      const ClassRef cls = program.class_of_call(call);
      if (!cls || program.derives_from(cls, Api::module_class) ||
          !holds_any(cls.module->tree().text(cls.cls->body), {".state_dict("}))
        return false;
      const auto given = pitfalls::facts::arguments_of(call);
      return std::any_of(given.begin(), given.end(),
                         [&](Ref each) { return program.wrap_of(each) == &wrap; });
    });
  });
}

}  // namespace

void tell_old_tests_of_gpus(Left& left) {
  std::vector<Ref> places;
  for (const Module* module : left.program.modules()) {
    const auto& tree = module->tree();
    for (NodeId at = 0; at < tree.size(); ++at) {
      const Ref whole{module, at};
      Ref condition;
      Ref model;
      if (tree[at].kind == Kind::conditional) {
        condition = whole.with(tree.child_at(at, 1));
        model = asked_by_gpus(left.program, condition, whole.with(tree.child_at(at, 0)),
                              whole.with(tree.child_at(at, 2)));
      } else if (tree[at].kind == Kind::if_statement) {
        condition = whole.child(Field::condition);
        model = asked_by_gpus(left.program, condition, whole.child(Field::consequence),
                              whole.child(Field::alternative));
      }
      if (model && is_old_question(left.program, condition, model) && left.is_run(whole))
        places.push_back(condition);
    }
  }
  left.tell(Harm::figures, places,
            "every run wraps the model now, and this still asks for the number of GPUs: where it "
            "says one, what follows is given the wrapper in place of the model (a state that is "
            "saved of it has keys that begin with 'module.'). Take model.module in every run.");
}

// net.load_state_dict(torch.load(path)["state"]) of a model whose state this program saves nowhere:
// another one has written the file, perhaps on one GPU.
void tell_keys_of_others(Left& left) {
  const Program& program = left.program;
  if (pitfalls::changes_keys(program)) return;
  const std::vector<const Wrap*> saved = saved_wraps(program);
  std::vector<Ref> places;
  for (const CallRef& load : program.calls_named("load_state_dict")) {
    const Wrap* wrap = load.receiver() ? program.wrap_of(load.receiver()) : nullptr;
    const Ref strict = load.argument(1, "strict");
    if (wrap != nullptr && wrap->kind == Wrapper::ddp && !strict && is_from_file(program, load) &&
        std::find(saved.begin(), saved.end(), wrap) == saved.end() &&
        was_made_on_several_gpus(program, *wrap) && left.is_run(load.ref()) &&
        !is_saved_by_own_class(program, *wrap) &&
        program.runs_before(wrap->call.ref(), load.ref()) &&
        !asks_for_wrapper(program, load.ref(), load.receiver()))
      places.push_back(load.ref());
  }
  left.tell(Harm::stops, places,
            "every run wraps this model now, and its keys begin with 'module.'; those of a file "
            "that another script wrote on one GPU do not, and load_state_dict raises for missing "
            "and unexpected keys. Load such a file into the model behind `.module`.");
}

void tell_changed_keys(Left& left) {
  const Program& program = left.program;
  if (pitfalls::changes_keys(program) || pitfalls::is_stripped_elsewhere(program)) return;
  std::vector<Ref> places;
  for (const CallRef& save : pitfalls::calls_that_save(program))
    for (const CallRef& state : pitfalls::calls_saved(program, save)) {
      if (state.call->name != "state_dict" || !state.receiver() || !left.is_run(state.ref()) ||
          left.is_found(state.ref(), "DDP041"))
        continue;
      const Wrap* wrap = program.wrap_of(state.receiver());
      if (wrap != nullptr && wrap->kind == Wrapper::ddp &&
          was_made_on_several_gpus(program, *wrap) &&
          !asks_for_wrapper(program, state.ref(), state.receiver()))
        places.push_back(state.ref());
    }
  if (places.empty() ||
      !(pitfalls::is_loaded_elsewhere(program) || pitfalls::is_loaded_by_other_trainings(program)))
    return;
  // Of which each run decides by the number of its GPUs, perhaps.
  const std::string wrapped = pitfalls::load_into_wrapper_elsewhere(program);
  left.tell(Harm::figures, places,
            "every run wraps the model now, and the keys saved here begin with 'module.'; those of "
            "runs on one GPU did not, and a script of the project that loads them on one GPU finds "
            "missing and unexpected keys. Save model.module.state_dict(), and load into "
            "model.module where this program resumes" +
                (wrapped.empty() ? "."
                                 : ", and at " + wrapped +
                                       ", which wraps before it loads and looks for 'module.'."));
}

}  // namespace bench::diagnose
