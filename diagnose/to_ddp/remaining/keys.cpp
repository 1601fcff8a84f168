// The keys that checkpoints have now.
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "scenarios/pitfalls/files/readers_elsewhere.hpp"
#include "scenarios/pitfalls/files/saved_states.hpp"
#include "scenarios/pitfalls/files/state_keys.hpp"
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

// if dist.is_initialized(): a step has put this in the place of a question for GPUs. A wrapper in
// the other branch was there for one GPU.
bool was_made_on_several_gpus(const Program& program, const Wrap& wrap) {
  const auto guards = program.guards(wrap.call.ref());
  const auto& wraps = program.wraps();
  return std::any_of(guards.begin(), guards.end(),
                     [](const Guard& guard) {
                       const auto& tree = guard.condition.module->tree();
                       return tree[tree[guard.condition.node].parent].kind != Kind::conditional &&
                              holds_any(guard.condition.text(), {"is_initialized("});
                     }) &&
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

// model.module.state_dict() if args.n_gpu > 1 else model.state_dict(), in whichever order, and the
// same in an if statement: the model whose wrapper it asks for by the number of GPUs.
Ref asked_by_gpus(Ref condition, Ref first, Ref second) {
  if (!condition ||
      !holds_any(pitfalls::facts::lowered(condition.text()), {"gpu", "device_count"}) ||
      holds_any(condition.text(),
                {"isinstance", "hasattr", "is_initialized", "use_gpu", "is_available"}))
    return {};
  const Ref a = behind_wrapper(first);
  const Ref b = behind_wrapper(second);
  if (static_cast<bool>(a) == static_cast<bool>(b)) return {};
  const Ref model = a ? a : b;
  const Ref other = a ? second : first;
  return !other || pitfalls::facts::contains(other.text(), model.text()) ? model : Ref{};
}

bool is_wrapped_in_every_run(const Program& program, Ref model) {
  const Wrap* wrap = program.wrap_of(model, Wrapper::ddp);
  return wrap != nullptr && was_made_on_several_gpus(program, *wrap);
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
        model = asked_by_gpus(condition, whole.with(tree.child_at(at, 0)),
                              whole.with(tree.child_at(at, 2)));
      } else if (tree[at].kind == Kind::if_statement) {
        condition = whole.child(Field::condition);
        model = asked_by_gpus(condition, whole.child(Field::consequence),
                              whole.child(Field::alternative));
      }
      if (model && is_wrapped_in_every_run(left.program, model) && left.is_run(whole))
        places.push_back(condition);
    }
  }
  left.tell(Harm::figures, places,
            "every run wraps the model now, and this still asks for the number of GPUs: where it "
            "says one, what follows is given the wrapper in place of the model (a state that is "
            "saved of it has keys that begin with 'module.'). Take model.module in every run.");
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
  if (places.empty() || !pitfalls::is_loaded_elsewhere(program)) return;
  left.tell(Harm::figures, places,
            "every run wraps the model now, and the keys saved here begin with 'module.'; those of "
            "runs on one GPU did not, and a script of the project that loads them on one GPU finds "
            "missing and unexpected keys. Save model.module.state_dict(), and load into "
            "model.module where this program resumes.");
}

}  // namespace bench::diagnose
