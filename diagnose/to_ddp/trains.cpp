#include "diagnose/to_ddp/trains.hpp"

#include "diagnose/driver/assemble.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::says_any;

// One of the words of the name begins so.
bool has_word(std::string_view name, std::initializer_list<std::string_view> beginnings) {
  for (const std::string& word : pitfalls::words_of_name(name))
    for (const std::string_view each : beginnings)
      if (word.starts_with(each)) return true;
  return false;
}

bool is_of_evaluation(std::string_view name) {
  return has_word(name, {"eval", "test", "valid", "val", "infer", "predict", "demo", "score",
                         "metric", "extract", "visual", "sample", "generat", "submi", "benchmark"});
}

// get_train_loader, load_pretrained: what is made, read or shown, and nothing done.
bool gives_something(std::string_view name) {
  return has_word(
      name, {"get", "load", "make", "build", "create", "set", "pretrain", "parse", "add", "save",
             "print", "log", "is", "has", "data", "dataset", "zero", "from"});
}

// An object that trains, by its name: trainer, self.solver, runner.
bool is_driver(std::string_view object) {
  return object.find('(') == std::string_view::npos &&
         says_any(object.substr(object.rfind('.') + 1),
                  {"trainer", "solver", "runner", "engine", "agent", "learner", "algo",
                   "experiment", "pipeline"});
}

// kmeans.fit(features): no network.
bool is_of_numbers(const Program& program, Ref object) {
  if (says_any(object.text(), {"kmeans", "pca", "tsne", "umap", "scaler", "clf", "svm", "knn",
                               "logreg", "regress", "faiss", "index"}))
    return true;
  return std::any_of(
      program.sources(object).begin(), program.sources(object).end(), [&](const Source& source) {
        const CallRef made = program.as_call(source.ref);
        return made && has_word(program.qualified({made.module, made.call->function}),
                                {"sklearn", "scipy", "faiss", "umap", "cuml"});
      });
}

class Seen {
 public:
  Seen(const Program& program, const ReachedCode& reached) : program_(program), reached_(reached) {}

  bool evaluates() const {
    if (is_of_evaluation(name_of_script())) return true;
    return any_call([&](const CallRef& call) {
             return call.call->api == Api::no_grad ||
                    (call.call->name == "eval" && call.receiver()) ||
                    call.call->name == "inference_mode";
           }) ||
           has_no_grad_decorator();
  }

  bool may_train() const {
    return any_call([&](const CallRef& call) { return steps(call) || may_train_unseen(call); });
  }

 private:
  template <typename Test>
  bool any_call(const Test& test) const {
    for (const Module* module : program_.modules())
      for (const Call& call : module->calls()) {
        const CallRef each{module, &call};
        if (test(each) && reached_.has(each)) return true;
      }
    return false;
  }

  std::string_view name_of_script() const {
    const std::string_view path = program_.root().path();
    return path.substr(path.rfind('/') + 1);
  }

  bool has_no_grad_decorator() const {
    return std::any_of(program_.functions().begin(), program_.functions().end(),
                       [&](const FunctionRef& each) {
                         const Ref body{each.module, each.function->body};
                         return reached_.has(body) && program_.under_no_grad(body);
                       });
  }

  // A step of an optimizer or a scaler, whoever made it; what trains on its own.
  bool steps(const CallRef& call) const {
    const Ref object = call.receiver();
    if (call.call->name == "step" && object) return is_of_optimizer(call) && !steps_another(object);
    // p.data -= lr * p.grad for p in model.parameters()
    if (call.call->name == "backward" && object) {
      const FunctionRef around = program_.enclosing_function(call.ref());
      const Ref text{call.module, around ? around.function->node : 0};
      return text.text().find(".parameters()") != std::string_view::npos &&
             text.text().find(".grad") != std::string_view::npos;
    }
    const Api api = call.call->api;
    return api == Api::lightning_trainer || api == Api::lightning_fabric ||
           api == Api::hf_trainer || api == Api::deepspeed;
  }

  bool is_of_optimizer(const CallRef& step) const {
    const std::string_view object = step.receiver().text();
    if (says_any(object, {"optim"})) return true;
    if (says_any(object, {"prof", "env", "pbar", "bar", "sched"}) || step.positional(1))
      return false;
    const ClassRef owner = program_.class_of(step.receiver());
    return !owner || says_any(owner.cls->name, {"optim"}) ||
           program_.derives_from(owner, Api::optimizer);
  }

  // The optimizer is that of a model which no DataParallel wraps: a linear head above a frozen
  // network. Sure only where all of both can be seen.
  bool steps_another(Ref optimizer) const {
    const auto& made = program_.sources(optimizer);
    return !made.empty() && std::all_of(made.begin(), made.end(), [&](const Source& source) {
      const CallRef call = program_.as_call(source.ref);
      if (!call || call.call->api != Api::optimizer) return false;
      const CallRef parameters = program_.as_call(call.argument(0, "params"));
      return parameters && parameters.call->name == "parameters" && parameters.receiver() &&
             is_another(parameters.receiver());
    });
  }

  // prepare(net), Renderer(net): what is handed on may be a part of what is wrapped.
  bool is_handed_on(Ref model) const {
    const auto& calls = model.module->calls();
    return std::any_of(calls.begin(), calls.end(), [&](const Call& call) {
      const auto given = model.module->arguments(call.node);
      return std::any_of(given.begin(), given.end(), [&](const Argument& each) {
        return model.module->text(each.value) == model.text();
      });
    });
  }

  bool is_another(Ref model) const {
    // self.net.generator is a part of self.net.
    const bool is_part =
        model.kind() == Kind::attribute && model.child(Field::object).text() != "self";
    const auto& made = program_.module_sources(model);
    return !is_part && !made.empty() && program_.wrap_of(model) == nullptr &&
           !is_handed_on(model) && std::all_of(made.begin(), made.end(), [&](const Source& source) {
             const CallRef call = program_.as_call(source.ref);
             return source.how == Source::How::value && call && is_network(call) &&
                    std::none_of(program_.wraps().begin(), program_.wraps().end(),
                                 [&](const Wrap& wrap) { return may_wrap(wrap, source, call); });
           });
  }

  bool is_network(const CallRef& made) const {
    const ClassRef cls = program_.class_of_call(made);
    return cls ? program_.derives_from(cls, Api::module_class)
               : made.module->qualified(made.call->function).starts_with("torch.nn.");
  }

  bool may_wrap(const Wrap& wrap, const Source& source, const CallRef& made) const {
    const auto& wrapped = program_.module_sources(wrap.module);
    const ClassRef cls = program_.class_of_call(made);
    if (cls && std::find(wrap.classes.begin(), wrap.classes.end(), cls) != wrap.classes.end())
      return true;
    return wrapped.empty() || std::any_of(wrapped.begin(), wrapped.end(), [&](const Source& each) {
             return each.ref == source.ref || each.how != Source::How::value;
           });
  }

  // A method that a base leaves empty is another one's where it is run.
  static bool is_left_empty(FunctionRef method) {
    if (method.function->owner_class == kNoNode) return false;
    const SyntaxTree& tree = method.module->tree();
    for (NodeId at = tree[method.function->body].first_child; at != kNoNode;
         at = tree[at].next_sibling) {
      const std::string_view text = tree.text(at);
      const bool is_text = tree[at].kind == Kind::expression_statement &&
                           tree[tree[at].first_child].kind == Kind::string;
      if (!is_text && text != "pass" && text != "..." &&
          text.find("NotImplemented") == std::string_view::npos)
        return false;
    }
    return true;
  }

  bool is_seen(const CallRef& call) const {
    const FunctionRef callee = program_.callee(call);
    return callee ? !is_left_empty(callee) : static_cast<bool>(program_.class_of_call(call));
  }

  // train() that is called on what eval() is called on, too, is the mode of a module.
  bool sets_mode(const CallRef& call) const {
    const Ref object = call.receiver();
    if (call.call->name != "train" || !object || call.positional(1)) return false;
    if (object.text().starts_with("super(") && is_in_network(call)) return true;
    const Ref mode = call.positional(0);
    if (mode && mode.kind() != Kind::false_literal && mode.kind() != Kind::true_literal &&
        mode.kind() != Kind::identifier && mode.kind() != Kind::attribute)
      return false;
    if (!mode && is_driver(object.text())) return false;
    if (program_.wrap_of(object) != nullptr ||
        program_.derives_from(program_.class_of(object), Api::module_class))
      return true;
    if (mode && (mode.kind() == Kind::false_literal || mode.text() == "mode")) return true;
    const auto evals = program_.calls_named("eval");
    return std::any_of(evals.begin(), evals.end(), [&](const CallRef& eval) {
      return eval.receiver() && eval.receiver().text() == object.text();
    });
  }

  bool may_train_unseen(const CallRef& call) const {
    const std::string_view name = call.call->name;
    const Ref object = call.receiver();
    const bool is_named =
        has_word(name, {"train", "fit", "optimi", "finetune", "learn", "adapt", "update", "epoch",
                        "run", "main", "launch", "start", "execute", "loop", "solve", "process"});
    const bool is_of_driver = object && is_driver(object.text()) && !is_of_evaluation(name);
    if ((!is_named && !is_of_driver) || is_seen(call)) return false;
    return trains_by_name(call, is_of_driver);
  }

  // update_parameters(batch), agent.update(); but state.update(weights) of a dictionary.
  static bool updates_weights(std::string_view name, Ref object) {
    if (name != "update")
      return says_any(name, {"param", "weight", "model", "net", "actor", "critic"});
    return object && says_any(object.text(), {"model", "net", "policy", "actor"}) &&
           !says_any(object.text(), {"dict", "state", "cfg", "conf", "args", "param"});
  }

  bool is_in_network(const CallRef& call) const {
    const ClassRef owner = program_.enclosing_class(call.ref());
    return owner && program_.derives_from(owner, Api::module_class);
  }

  // self.update_block(x) in a network: a layer.
  bool is_layer(const CallRef& call) const {
    return call.receiver().text() == "self" && is_in_network(call) &&
           !program_.attribute_defs(call.call->name).empty();
  }

  bool trains_by_name(const CallRef& call, bool is_of_driver) const {
    const std::string_view name = call.call->name;
    const Ref object = call.receiver();
    if (is_outside(call) || sets_mode(call) || is_layer(call)) return false;
    if (object && is_of_numbers(program_, object)) return false;
    if (is_of_driver) return !gives_something(name) && !is_attribute_of_mode(call);
    if (has_word(name, {"train", "fit", "optimi", "finetune", "learn", "adapt"}))
      return !gives_something(name) && !is_of_evaluation(name) && name != "fit_transform" &&
             !makes_optimizer(name);
    if (has_word(name, {"update"})) return updates_weights(name, object);
    if (has_word(name, {"epoch"}))
      return name != "set_epoch" && !gives_something(name) && !is_of_evaluation(name);
    // run(cfg), runner.start(): of a file of the project that is not there.
    return !is_of_evaluation(name) && !gives_something(name) && is_given_model(call);
  }

  static bool makes_optimizer(std::string_view name) {
    return says_any(name, {"optimizer"}) && !says_any(name, {"step"});
  }

  // engine.eval(), trainer.to(device): nothing is trained by that.
  static bool is_attribute_of_mode(const CallRef& call) {
    constexpr std::string_view kHarmless[] = {"eval", "to",    "cuda",  "cpu",    "append", "items",
                                              "keys", "close", "split", "format", "strip",  "join"};
    return std::find(std::begin(kHarmless), std::end(kHarmless), call.call->name) !=
           std::end(kHarmless);
  }

  // A library that is not of the project: torch, numpy, subprocess.
  bool is_outside(const CallRef& call) const {
    const std::string path = call.module->qualified(call.call->function);
    return path.find('.') != std::string::npos && is_external_import(path) &&
           !says_any(path, {"train", "ignite", "fit"});
  }

  // What is run knows a model, or all that there is: run(model, loader), run(args), runner.run().
  bool is_given_model(const CallRef& call) const {
    if (call.receiver() && call.receiver().kind() != Kind::identifier) return false;
    const auto given = call.module->arguments(call.call->node);
    return std::any_of(given.begin(), given.end(), [&](const Argument& each) {
      return says_any(call.module->text(each.value),
                      {"model", "net", "cfg", "config", "args", "opt", "flags"});
    });
  }

  const Program& program_;
  const ReachedCode& reached_;
};

}  // namespace

bool surely_trains_nothing(const Program& program, const ReachedCode& reached) {
  const auto& modules = program.modules();
  if (modules.size() >= kMaxModules) return false;
  if (std::any_of(modules.begin(), modules.end(),
                  [](const Module* module) {
                    return module->tree().has_errors() && !module->calls_of("step").empty();
                  }) ||
      program.root().tree().has_errors())
    return false;
  return !Seen(program, reached).may_train();
}

bool is_test_by_name(const Program& program, const ReachedCode& reached) {
  const std::string_view path = program.root().path();
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (!is_of_evaluation(name) || has_word(name, {"train", "fit", "finetune", "learn"}))
    return false;
  const auto backwards = program.calls_named("backward");
  return std::none_of(backwards.begin(), backwards.end(),
                      [&](const CallRef& call) { return reached.is_run(call.ref()); });
}

bool evaluates(const Program& program, const ReachedCode& reached) {
  return Seen(program, reached).evaluates();
}

bool is_before_training(const Program& program, Ref node) {
  if (!program.loops_around(node).empty()) return true;
  const auto& loops = program.training_loops();
  return std::any_of(loops.begin(), loops.end(), [&](const TrainingLoop& loop) {
    return program.runs_before(node, loop.batches);
  });
}

}  // namespace bench::diagnose
