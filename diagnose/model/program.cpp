#include "diagnose/model/program.hpp"

#include "diagnose/model/accelerate.hpp"
#include "diagnose/model/kinds.hpp"
#include "diagnose/model/library_parameters.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// Calls that hand on the items of their first argument.
bool passes_items(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "enumerate", "tqdm",      "iter",          "zip",           "islice",    "cycle",      "list",
      "track",     "log_every", "notebook_tqdm", "tqdm_notebook", "wrap_tqdm", "ProgressBar"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool contains_word(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

// Only files of the script's models import Lightning, for a base class or a helper: nothing here
// makes one of its Trainers, and the backward pass is written out.
bool trains_without_lightning(const Program& program) {
  for (const char* package : {"pytorch_lightning", "lightning"})
    if (program.root().imports_top_level(package)) return false;
  for (const char* name : {"Trainer", "LightningCLI", "instantiate", "from_argparse_args"})
    if (!program.calls_named(name).empty()) return false;
  const auto fits = program.calls_named("fit");
  return !program.uses(Api::lightning_trainer) && !program.uses(Api::lightning_fabric) &&
         !program.calls_named("backward").empty() &&
         std::none_of(fits.begin(), fits.end(), [](const CallRef& call) {
           return call.receiver() && contains_word(call.receiver().text(), "trainer");
         });
}

// deepspeed.initialize() joins the group by itself.
bool wraps_in_own_group(const Program& program) {
  return program.uses(Api::deepspeed) ||
         (program.uses(Api::init_process_group) &&
          (program.uses(Api::ddp) || program.uses(Api::apex_ddp) || program.uses(Api::fsdp) ||
           program.uses(Api::fully_shard)));
}

// A framework starts the ranks and wraps the model. Some are also used for their parts: layers of
// mmcv and metrics of ignite say nothing about a script that joins its group and wraps its model
// itself.
bool is_taken_over(const Program& program) {
  const auto any = [&](std::initializer_list<std::string_view> packages) {
    return std::any_of(packages.begin(), packages.end(),
                       [&](std::string_view package) { return program.imports(package); });
  };
  const bool wraps = wraps_in_own_group(program);
  if (program.lightning_distributes() || any({"colossalai", "composer", "determined", "oneflow"}))
    return true;
  // Accelerate is imported for a seed or a helper, and the script prepares nothing with it.
  const bool by_itself =
      wraps && !program.uses(Api::accelerator) && program.calls_named("prepare").empty();
  if (!by_itself && any({"accelerate"})) return true;
  if (!wraps && any({"ignite", "fairseq", "mmcv", "mmengine", "catalyst", "detectron2", "fastai"}))
    return true;
  // Imported beside DDP for FSDP, an option, one helper.
  if (program.has_ddp()) return false;
  // What deepspeed.initialize() makes reduces gradients; data and files are left to the script. Its
  // layers and optimizers distribute nothing beside a wrapper of the script's own.
  if (any({"deepspeed"}) && !wraps) return true;
  return any({"horovod", "fairscale", "torch_xla", "ray", "megatron"});
}

}  // namespace

Ref CallRef::argument(std::size_t index, std::string_view name) const {
  if (call->handed) return argument_of_base(*this, index, name);
  return {module, module->argument(call->node, index, name)};
}

Ref CallRef::positional(std::size_t index) const {
  if (call->handed) return argument_of_base(*this, index, library_parameter(*module, *call, index));
  return {module, module->positional(call->node, index)};
}

Ref CallRef::keyword(std::string_view name) const {
  if (call->handed) return argument_of_base(*this, std::string::npos, name);
  return {module, module->keyword(call->node, name)};
}

bool CallRef::has_splat() const {
  return call->handed ? base_has_splat(*this) : module->has_splat(call->node);
}

Ref CallRef::receiver() const {
  if (call == nullptr || call->function == kNoNode) return {};
  NodeId function = call->function;
  // parser for arg("--lr") after arg = parser.add_argument
  if ((*module)[function].kind == Kind::identifier && call->name == "add_argument" &&
      module->text(function) != call->name) {
    const NodeId here = module->function_of(call->node);
    NodeId given = kNoNode;
    for (const std::uint32_t index : module->defs_of(module->text(function), false)) {
      const Def& def = module->defs()[index];
      if (given == kNoNode || module->function_of(def.target) == here) given = def.value;
    }
    if (given != kNoNode) function = given;
  }
  if ((*module)[function].kind != Kind::attribute) return {};
  return {module, module->tree().child(function, Field::object)};
}

Program::Program(ProgramInput input) : input_(std::move(input)) {
  index_calls();
  index_kinds();
  index_accelerators();
  index_prepares();
  index_trainers();
  another_engine_ = uses(Api::accelerator) && uses_another_engine(*this);
  index_picks();
  find_wraps();
  framework_distributes_ = is_taken_over(*this);
  find_training_loops();
}

// What stands under `if __name__ == "__main__"` does not run when the file is imported.
bool Program::may_run(const Module& module, const Call& call) const {
  return &module == &root() || !module.under_main_guard(call.node);
}

void Program::index_calls() {
  for (const Module* module : modules()) {
    for (const Function& function : module->functions()) {
      if (function.name.empty()) continue;
      functions_.push_back({module, &function});
      functions_by_name_[function.name].push_back(functions_.back());
    }
    for (const Class& cls : module->classes()) functions_by_name_[cls.name];
    for (const std::uint32_t index : module->api_calls()) {
      const Call& call = module->calls()[index];
      if (may_run(*module, call))
        by_api_[static_cast<std::size_t>(call.api)].push_back({module, &call});
    }
  }
}

std::span<const CallRef> Program::calls(Api api) const {
  return by_api_[static_cast<std::size_t>(api)];
}

std::vector<CallRef>& Program::calls_by_name(std::string_view name) const {
  if (const auto known = by_name_.find(name); known != by_name_.end()) return known->second;
  std::vector<CallRef> found;
  const HashedName hashed(name);
  for (const Module* module : modules())
    for (const std::uint32_t index : module->calls_of(hashed))
      if (const Call& call = module->calls()[index]; may_run(*module, call))
        found.push_back({module, &call});
  return by_name_.emplace(name, std::move(found)).first->second;
}

bool Program::imports(std::string_view package) const {
  if (const auto known = imported_.find(package); known != imported_.end()) return known->second;
  const bool found = std::any_of(modules().begin(), modules().end(), [&](const Module* module) {
    return module->imports_top_level(package);
  });
  return imported_.emplace(package, found).first->second;
}

// Networks of other projects are LightningModules often, and their files import Lightning for that
// alone.
bool Program::lightning_distributes() const {
  if (!imports("pytorch_lightning") && !imports("lightning")) return false;
  const bool prepares = uses(Api::accelerator) && !calls_named("prepare").empty();
  return !trains_without_lightning(*this) || !(prepares || wraps_in_own_group(*this));
}

bool Program::mentions(std::string_view word) const { return tables_.mentions(modules(), word); }

void Program::find_wraps() {
  const auto add = [&](CallRef call, Wrapper kind) {
    Wrap wrap;
    wrap.call = call;
    wrap.kind = kind;
    // BalancedDataParallel(first_share, model)
    const bool is_second = call.call->name == "BalancedDataParallel" && !call.call->handed;
    wrap.module = is_second ? call.positional(1) : call.argument(0, "module");
    wrap.own = class_of_call(call);
    for (const Source& source : module_sources(wrap.module))
      for (const ClassRef& cls : classes_of_call(as_call(source.ref)))
        if (std::find(wrap.classes.begin(), wrap.classes.end(), cls) == wrap.classes.end())
          wrap.classes.push_back(cls);
    wraps_by_call_.emplace(wrap.call.ref(), wraps_.size());
    wraps_.push_back(std::move(wrap));
  };
  for (const CallRef& call : calls(Api::ddp)) add(call, Wrapper::ddp);
  for (const CallRef& call : calls(Api::apex_ddp)) add(call, Wrapper::ddp);
  for (const CallRef& call : calls(Api::data_parallel)) add(call, Wrapper::data_parallel);
  has_ddp_ = uses(Api::ddp) || uses(Api::apex_ddp);
  has_data_parallel_ = uses(Api::data_parallel);
}

const std::vector<ForwardCall>& Program::forward_calls() const {
  if (forward_calls_) return *forward_calls_;
  std::vector<ForwardCall> found;
  if (!wraps_.empty()) {
    for (const Module* module : modules())
      for (const Call& call : module->calls()) {
        if (call.api != Api::none || call.function == kNoNode) continue;
        Ref function{module, call.function};
        if (call.name == "forward" && function.kind() == Kind::attribute)
          function = function.child(Field::object);
        else if (function.kind() == Kind::attribute && !function.text().starts_with("self.") &&
                 !is_field(call.name))
          continue;
        // What nothing gives a value is a function or a class.
        if (!stands_for_object(function) || !may_be_given(function)) continue;
        for (const Wrapper kind : {Wrapper::ddp, Wrapper::data_parallel})
          if (const Wrap* wrap = wrap_of(function, kind)) found.push_back({{module, &call}, wrap});
      }
  }
  forward_calls_ = std::move(found);
  return *forward_calls_;
}

// tqdm(loader) for a name it has: bar = tqdm(loader), with tqdm(loader) as bar, it = iter(loader);
// also endless(loader), a generator of the program.
Ref Program::items_behind(Ref name) const {
  if (!stands_for_object(name)) return {};
  for (const Source& source : sources(name)) {
    const CallRef call = source.how == Source::How::value ? as_call(source.ref) : CallRef{};
    const Ref first = call ? call.positional(0) : Ref{};
    if (!first || call.call->api != Api::none || call.call->name == "list") continue;
    const FunctionRef function = callee(call);
    const bool generates =
        function && contains_word(function.module->text(function.function->body), "yield");
    if (passes_items(call.call->name) || (generates && comes_from(first, Api::data_loader)))
      return first;
  }
  return {};
}

namespace {

// loader for `tqdm(loader) if is_main else loader`: both arms go over the same.
Ref in_both_arms(const Program& program, Ref conditional) {
  const SyntaxTree& tree = conditional.module->tree();
  const Ref first = program.strip_iterable(conditional.with(tree.child_at(conditional.node, 0)));
  const Ref second = program.strip_iterable(conditional.with(tree.child_at(conditional.node, 2)));
  return first && second && first.text() == second.text() ? second : Ref{};
}

}  // namespace

Ref Program::strip_iterable(Ref iterable) const {
  for (int depth = 0; depth < 6; ++depth) {
    if (iterable.kind() == Kind::named_expression) {  // (bar := tqdm(loader))
      iterable = iterable.child(Field::value);
      continue;
    }
    if (iterable.kind() == Kind::conditional) {
      const Ref items = in_both_arms(*this, iterable);
      if (!items) break;
      iterable = items;
      continue;
    }
    const CallRef call = as_call(iterable);
    if (!call) {
      const Ref items = iterable ? items_behind(iterable) : Ref{};
      if (!items) break;
      iterable = items;
      continue;
    }
    if (call.call->api == Api::data_loader) break;
    const Ref first = call.positional(0);
    if (!first) break;
    if (!passes_items(call.call->name) && !comes_from(first, Api::data_loader)) break;
    iterable = first;
  }
  return iterable;
}

namespace {

// The call stands in the subtree, or in a function that the subtree calls.
bool runs_under(const Program& program, Ref subtree, const CallRef& call) {
  if (call.module == subtree.module && call.module->tree().contains(subtree.node, call.call->node))
    return true;
  const FunctionRef function = program.enclosing_function(call.ref());
  if (!function || function == program.enclosing_function(subtree)) return false;
  const auto reached = program.reached(subtree);
  return std::find(reached.begin(), reached.end(), function) != reached.end();
}

}  // namespace

// What next(it) or it.next() in the loop's body draws from; empty where it draws from nothing
// known.
Ref Program::drawn_in(Ref loop) const {
  const Ref body = loop.child(Field::body);
  for (const std::string_view name : {"next", "__next__"})
    for (const CallRef& call : calls_named(name)) {
      if (!body || !runs_under(*this, body, call)) continue;
      const Ref it = call.receiver() ? call.receiver() : call.positional(0);
      const Ref items = it ? strip_iterable(it) : Ref{};
      if (items && comes_from(items, Api::data_loader)) return items;
    }
  return {};
}

// while True: of def endless(loader): while True: for x in loader: yield x, which next(it) in the
// loop draws from: each round of it is an epoch.
Ref Program::rounds_of_generator(Ref loop) const {
  for (const CallRef& call : calls_named("next")) {
    if (!call.positional(0) || !runs_under(*this, loop, call)) continue;
    for (const Source& source : sources(call.positional(0))) {
      const FunctionRef made = callee(as_call(source.ref));
      if (!made) continue;
      const SyntaxTree& tree = made.module->tree();
      for (const NodeId node : made.module->loops())
        if (tree.contains(made.function->body, node) && tree[node].kind == Kind::while_statement)
          return {made.module, node};
    }
  }
  return {};
}

bool Program::cuts_data(Ref loop) const {
  const Ref iterable = loop.child(Field::right);
  const CallRef range = iterable ? as_call(strip_iterable(iterable)) : CallRef{};
  const CallRef length = range && range.positional(2) ? as_call(range.positional(1)) : CallRef{};
  return length && length.call->name == "len" && range.positional(2).text() != "1";
}

void Program::find_training_loops() {
  const auto is_counter = [&](Ref loop) {
    if (loop.kind() == Kind::while_statement) return true;
    Ref iterable = strip_iterable(loop.child(Field::right));
    const auto counts = [&](const CallRef& call) {
      return call && (call.call->name == "range" || call.call->name == "trange" ||
                      call.call->name == "count");
    };
    if (counts(as_call(iterable))) return true;
    // bar = range(n), and on one rank bar = tqdm(bar).
    const bool is_named = iterable.kind() == Kind::identifier || iterable.kind() == Kind::attribute;
    const auto behind = is_named ? sources(iterable) : std::vector<Source>{};
    return std::any_of(behind.begin(), behind.end(), [&](const Source& source) {
      return source.how == Source::How::value && counts(as_call(source.ref));
    });
  };
  for (const CallRef& backward : calls_named("backward")) {
    const Ref receiver = backward.receiver();
    const Ref called{backward.module, backward.call->function};
    const bool by_object = !called.text().ends_with("backward");  // loss_scaler(loss, optimizer)
    if (!by_object && (!receiver || receiver.text() == "self")) continue;
    const FunctionRef inside = enclosing_function(backward.ref());
    if (inside && inside.function->name == "backward") continue;
    const std::vector<Ref> loops = loops_around(backward.ref());
    if (loops.empty()) continue;
    auto batches =
        std::find_if(loops.begin(), loops.end(), [&](Ref at) { return !is_counter(at); });
    // for phase in ["train", "val"]: not a loop over data
    if (batches != loops.end()) {
      const Kind kind = strip_iterable(batches->child(Field::right)).kind();
      if ((kind == Kind::list || kind == Kind::tuple) && batches != loops.begin())
        batches = loops.end();
    }
    const bool by_count = batches == loops.end();
    Ref drawn;  // the loader of next(batches), where the loop counts steps
    if (by_count) {
      batches = std::find_if(loops.begin(), loops.end(), [&](Ref at) {
        drawn = drawn_in(at);
        return static_cast<bool>(drawn);
      });
      if (!drawn) batches = loops.begin();
    }
    const auto known = std::find_if(training_loops_.begin(), training_loops_.end(),
                                    [&](const TrainingLoop& t) { return t.batches == *batches; });
    if (known != training_loops_.end()) {
      known->backwards.push_back(backward);
      continue;
    }
    TrainingLoop loop;
    loop.batches = *batches;
    loop.iterable = by_count ? drawn : strip_iterable(batches->child(Field::right));
    // Batches that are drawn may be counted in more than one loop: the outermost goes over epochs.
    const auto counts_epochs = [](Ref at) {
      return at.kind() == Kind::for_statement &&
             contains_word(at.child(Field::left).text(), "epoch");
    };
    for (auto outer = batches + 1; outer != loops.end(); ++outer) {
      if (loop.epochs && (!drawn || counts_epochs(loop.epochs))) break;
      if ((is_counter(*outer) && !cuts_data(*outer)) || counts_epochs(*outer)) loop.epochs = *outer;
    }
    if (!loop.epochs && drawn) loop.epochs = rounds_of_generator(*batches);
    loop.backwards.push_back(backward);
    loop.function = enclosing_function(*batches);
    training_loops_.push_back(std::move(loop));
  }
}

}  // namespace bench::diagnose
