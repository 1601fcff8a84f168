#include "scenarios/pitfalls/program/facts.hpp"

#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/own_gpu.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"
#include "scenarios/pitfalls/wrappers/taken_off.hpp"

#include <algorithm>
#include <cctype>

namespace bench::pitfalls::facts {

using diagnose::Api;
using diagnose::Call;
using diagnose::ClassRef;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Source;
using diagnose::TrainingLoop;
using diagnose::Value;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

constexpr std::size_t kMaxClasses = 24;

std::optional<int> index_in_name(std::string_view name) {
  if (name == "cuda") return -1;
  if (!name.starts_with("cuda:") || name.size() < 6 || name.size() > 8) return std::nullopt;
  int value = 0;
  for (const char c : name.substr(5)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

void add_class(std::vector<ClassRef>& out, ClassRef cls) {
  if (cls && out.size() < kMaxClasses && std::find(out.begin(), out.end(), cls) == out.end())
    out.push_back(cls);
}

}  // namespace

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

namespace {

// gpu = torch.device(gpu) in a loop comes from itself.
constexpr int kDevicesWithin = 4;

std::optional<int> cuda_index(const Program& program, Ref device, int depth) {
  if (depth > kDevicesWithin) return std::nullopt;
  std::optional<int> found;
  // Of several devices, as in devices[rank], none is the one.
  const auto is_another = [&](int index) { return found && *found != index; };
  for (const Source& source : program.sources(device)) {
    if (source.how != Source::How::value) return std::nullopt;
    if (const CallRef call = program.as_call(source.ref);
        call && call.call->api == Api::torch_device) {
      auto index = cuda_index(program, call.positional(0), depth + 1);
      if (const Ref second = call.positional(1); second && index) {
        const Value number = program.evaluate(second);
        if (!number.is_integer() || number.is_default) return std::nullopt;
        index = static_cast<int>(number.integer);
      }
      if (index && is_another(*index)) return std::nullopt;
      if (index) found = index;
      continue;
    }
    const Value value = program.evaluate(source.ref);
    // local_device() of a file that is not here: perhaps each rank's own.
    const bool is_made = program.as_call(source.ref) || source.ref.kind() == Kind::binary;
    if (is_made && !value.is_integer() && !value.is_string()) return std::nullopt;
    std::optional<int> index;
    if (value.is_integer() && !value.is_default) index = static_cast<int>(value.integer);
    if (value.is_string()) index = index_in_name(value.string);
    if (index && is_another(*index)) return std::nullopt;
    if (index) found = index;
  }
  return found;
}

// torchrun --nproc_per_node=$COUNT, accelerate launch: ranks whose number is not written out, or is
// more than one.
bool starts_ranks(const diagnose::LaunchLine& launch) {
  using diagnose::Launcher;
  const bool is_for_ranks =
      launch.launcher == Launcher::torchrun || launch.launcher == Launcher::launch_module ||
      launch.launcher == Launcher::accelerate || launch.launcher == Launcher::deepspeed;
  return starts_several(launch) || (is_for_ranks && !launch.processes_per_node());
}

}  // namespace

std::optional<int> cuda_index(const Program& program, Ref device) {
  return cuda_index(program, device, 0);
}

std::optional<std::int64_t> visible_gpus(const Program& program) {
  std::optional<std::int64_t> most;
  bool starts_unsaid = false;  // on GPUs that the line says nothing of
  for (const auto& launch : program.launches()) {
    const auto count = launch.visible_devices();
    if (count) most = std::max(most.value_or(0), *count);
    starts_unsaid = starts_unsaid || (!count && starts_ranks(launch));
  }
  if (most) return starts_unsaid && *most < 2 ? std::nullopt : most;
  if (const auto set = visible_devices(program); !set.empty()) {
    const auto text = program.string(set.front());
    if (!text || contains(*text, "GPU-")) return std::nullopt;
    return static_cast<std::int64_t>(diagnose::parse_visible_devices(*text).ids.size());
  }
  if (program.gpus()) return *program.gpus();
  return std::nullopt;
}

bool is_parameter(const Program& program, Ref name) {
  const auto function = program.enclosing_function(name);
  if (!function || name.kind() != Kind::identifier) return false;
  const auto& parameters = function.function->parameters;
  return std::any_of(parameters.begin(), parameters.end(),
                     [&](const auto& parameter) { return parameter.name == name.text(); });
}

std::vector<std::int64_t> device_ids(const Program& program, const CallRef& wrap) {
  std::vector<std::int64_t> out;
  const Value list = program.evaluate(wrap.argument(1, "device_ids"));
  if (list.type != Value::Type::list || list.is_default) return out;
  for (const Value& item : list.items) {
    if (item.is_default) return {};  // of a command-line option
    std::optional<int> index;
    if (item.is_integer()) index = static_cast<int>(item.integer);
    if (item.is_string()) index = index_in_name(item.string);
    if (!index || *index < 0) return {};
    out.push_back(*index);
  }
  return out;
}

std::vector<FunctionRef> forward_methods(const Program& program, ClassRef cls) {
  std::vector<FunctionRef> out;
  const FunctionRef forward = program.method(cls, "forward");
  if (!forward) return out;
  out.push_back(forward);
  for (std::size_t i = 0; i < out.size() && out.size() < kMaxClasses; ++i)
    for (const CallRef& call : calls_in({out[i].module, out[i].function->body})) {
      const Ref receiver = call.receiver();
      if (!receiver || receiver.text() != "self") continue;
      const FunctionRef method = program.method(cls, call.call->name);
      if (method && method.function->owner_class != diagnose::kNoNode &&
          std::find(out.begin(), out.end(), method) == out.end())
        out.push_back(method);
    }
  return out;
}

namespace {

// The classes, and those that they build in __init__.
std::vector<ClassRef> with_parts(const Program& program, std::vector<ClassRef> out) {
  for (std::size_t i = 0; i < out.size() && out.size() < kMaxClasses; ++i) {
    const FunctionRef init = program.method(out[i], "__init__");
    if (!init) continue;
    for (const CallRef& call : calls_in({init.module, init.function->body})) {
      // self.head = build_head(width) of the program, too.
      ClassRef cls = program.class_of_call(call);
      if (!cls && program.callee(call)) cls = program.class_of(call.ref());
      if (cls && program.derives_from(cls, Api::module_class)) add_class(out, cls);
    }
  }
  return out;
}

}  // namespace

std::vector<ClassRef> wrapped_classes(const Program& program, Wrapper kind) {
  std::vector<ClassRef> out;
  for (const Wrap& wrap : program.wraps())
    if (wrap.kind == kind &&
        !(kind == Wrapper::data_parallel && is_taken_off_at_once(program, wrap)))
      for (const ClassRef& cls : wrap.classes) add_class(out, cls);
  return with_parts(program, std::move(out));
}

std::vector<ClassRef> wrapped_classes(const Program& program, const Wrap& wrap) {
  return with_parts(program, wrap.classes);
}

std::vector<CallRef> calls_in(Ref subtree) {
  std::vector<CallRef> out;
  if (!subtree) return out;
  const auto& calls = subtree.module->calls();
  const NodeId last = subtree.module->tree()[subtree.node].last;
  auto at = std::lower_bound(calls.begin(), calls.end(), subtree.node,
                             [](const Call& call, NodeId id) { return call.node < id; });
  const auto end = std::lower_bound(at, calls.end(), last,
                                    [](const Call& call, NodeId id) { return call.node < id; });
  out.reserve(static_cast<std::size_t>(end - at));
  for (; at != end; ++at) out.push_back({subtree.module, &*at});
  return out;
}

std::vector<Ref> items_stored_in(Ref name) {
  std::vector<Ref> out;
  if (!name || name.kind() != Kind::identifier) return out;
  for (const std::uint32_t index : name.module->item_defs_of(name.text())) {
    const auto& def = name.module->defs()[index];
    if (def.value != diagnose::kNoNode &&
        name.module->function_of(def.target) == name.module->function_of(name.node))
      out.push_back(name.with(def.value));
  }
  return out;
}

std::vector<Ref> settings_of(const Program& program, std::string_view variable) {
  std::vector<Ref> out;
  for (const diagnose::Module* module : program.modules()) {
    const auto& tree = module->tree();
    for (const diagnose::EnvironmentItem& item : module->environment_items())
      if (item.name == variable && tree[item.node].field == Field::left &&
          tree[tree[item.node].parent].kind == Kind::assignment)
        out.push_back({module, tree[item.node].parent});
  }
  return out;
}

bool has_break(const Program& program, Ref loop) {
  const auto& breaks = loop.module->nodes_of(Kind::break_statement);
  const auto& tree = loop.module->tree();
  return std::any_of(breaks.begin(), breaks.end(), [&](NodeId at) {
    return tree.contains(loop.node, at) && program.innermost_loop(loop.with(at)) == loop;
  });
}

std::vector<CallRef> placements(const Program& program, const Wrap& wrap) {
  std::vector<CallRef> out;
  const std::string_view wrapped_name = program.assigned_name(wrap.call.ref());
  const std::string_view inner_name = wrap.module ? wrap.module.text() : std::string_view{};
  for (const std::string_view method : {"to", "cuda"})
    for (const CallRef& call : program.calls_named(method)) {
      const Ref receiver = call.receiver();
      if (!receiver || call.module != wrap.call.module) continue;
      const std::string_view text = receiver.text();
      const bool inside =
          wrap.module && call.module->tree().contains(wrap.module.node, call.call->node);
      const bool outside = call.module->tree().contains(receiver.node, wrap.call.call->node);
      if (inside || outside || text == inner_name ||
          (!wrapped_name.empty() && text == wrapped_name))
        out.push_back(call);
    }
  // model = Net().cuda(): the placement is in the assignment the name comes from.
  std::vector<Source> sources = program.sources(wrap.module);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const CallRef call = program.as_call(sources[i].ref);
    if (call &&
        (call.call->api == Api::convert_sync_batch_norm || call.call->api == Api::torch_compile))
      for (const Source& inner : program.sources(call.positional(0)))
        // model = torch.compile(model) leads back to itself.
        if (std::none_of(sources.begin(), sources.end(),
                         [&](const Source& known) { return known.ref == inner.ref; }))
          sources.push_back(inner);
    if (call && (call.call->name == "to" || call.call->name == "cuda") && call.receiver())
      out.push_back(call);
  }
  return out;
}

const TrainingLoop* training_loop_of(const Program& program, Ref node) {
  for (const Ref& loop : program.loops_around(node))
    for (const TrainingLoop& training : program.training_loops())
      if (training.batches == loop) return &training;
  return nullptr;
}

bool is_distributed(const Program& program) {
  // What an imported file offers counts once it is called; the script itself is taken as it is.
  const auto runs = [&](const CallRef& call) {
    if (is_switched_off(program, call.ref())) return false;
    return call.module == &program.root() ||
           (is_reachable(program, call.ref()) && !is_never_made(program, call.ref()));
  };
  std::vector<CallRef> inits;
  for (const CallRef& init : program.calls(Api::init_process_group))
    if (runs(init)) inits.push_back(init);
  // With the rank written out, every process of a larger group would be the same one.
  const auto alone = [&](const CallRef& init) { return is_written_for_one(program, init); };
  // A group of one process, made so that DDP can be used at all.
  if (!inits.empty() && std::all_of(inits.begin(), inits.end(), alone)) return false;
  if (!inits.empty()) return true;
  return std::any_of(
             program.wraps().begin(), program.wraps().end(),
             [&](const Wrap& wrap) { return wrap.kind == Wrapper::ddp && runs(wrap.call); }) ||
         (!program.framework_distributes() && works_in_a_group(program));
}

bool only_evaluates(const Program& program) {
  return program.calls_named("backward").empty() && program.uses(Api::no_grad);
}

bool uses_nccl(const Program& program) {
  for (const CallRef& call : program.calls(Api::init_process_group)) {
    const Ref backend = call.argument(0, "backend");
    if (!backend) continue;
    const auto name = program.string(backend);
    if (name && contains(*name, "nccl")) return true;
  }
  return false;
}

bool uses_cuda(const Program& program) {
  if (!program.calls_named("cuda").empty() || !program.calls_named("set_device").empty())
    return true;
  return program.mentions("\"cuda") || program.mentions("'cuda");
}

namespace {

// if rank != 0: barrier() above the node and if rank == 0: barrier() below it, in one function.
bool is_between_barriers(const Program& program, Ref node) {
  bool others_wait = false;
  bool first_joins = false;
  const auto own = program.calls(Api::barrier);
  std::vector<CallRef> barriers(own.begin(), own.end());
  // idist.barrier() of Ignite, and Horovod's barrier of a number that all ranks wait for.
  for (const std::string_view name : {"barrier", "wait_for_everyone", "allreduce"})
    for (const CallRef& call : program.calls_named(name)) barriers.push_back(call);
  for (const CallRef& barrier : barriers) {
    if (barrier.module != node.module ||
        program.enclosing_function(barrier.ref()) != program.enclosing_function(node))
      continue;
    const auto test = program.guarded_by_rank(barrier.ref());
    others_wait =
        others_wait || (test == diagnose::RankTest::not_main && barrier.call->node < node.node);
    first_joins =
        first_joins || (test == diagnose::RankTest::main_only && barrier.call->node > node.node);
  }
  return others_wait && first_joins;
}

}  // namespace

bool rank_goes_first(const Program& program, Ref node) {
  constexpr int kCalls = 5;
  for (int depth = 0; depth < kCalls && node; ++depth) {
    if (is_between_barriers(program, node)) return true;
    if (program.enclosing_with(node, [](Ref item) { return contains(item.text(), "_first("); }))
      return true;
    const FunctionRef function = program.enclosing_function(node);
    if (!function) return false;
    std::vector<CallRef> sites = program.call_sites(function);
    if (sites.empty() && function.function->makes_object()) {
      const ClassRef cls = program.enclosing_class(node);
      if (cls)
        for (const CallRef& made : program.calls_named(cls.cls->name)) sites.push_back(made);
    }
    node = sites.empty() ? Ref{} : sites.front().ref();
  }
  return false;
}

namespace {

// FileLock(path), and neither a block nor a clock.
bool is_lock(Ref item) {
  const auto words = words_of_name(item.text());
  return std::any_of(words.begin(), words.end(), [](std::string_view word) {
    return contains(word, "lock") && !contains(word, "block") && !contains(word, "clock");
  });
}

}  // namespace

bool under_lock(const Program& program, Ref node) {
  constexpr int kCalls = 5;
  for (int depth = 0; depth < kCalls && node; ++depth) {
    if (program.enclosing_with(node, is_lock)) return true;
    const FunctionRef function = program.enclosing_function(node);
    if (!function || program.call_sites(function).size() != 1) return false;
    node = program.call_sites(function).front().ref();
  }
  return false;
}

namespace {

// Nothing of the class is out of sight but object.
bool has_known_bases(const Program& program, ClassRef cls) {
  const auto& line = program.lineage(cls);
  return std::all_of(line.begin(), line.end(), [&](const ClassRef& each) {
    const auto& bases = each.cls->bases;
    const auto objects = std::count_if(bases.begin(), bases.end(), [&](const NodeId base) {
      return each.module->text(base) == "object";
    });
    return program.bases_of(each).size() + static_cast<std::size_t>(objects) == bases.size();
  });
}

}  // namespace

bool in_dataset(const Program& program, Ref node) {
  const ClassRef cls = program.enclosing_class(node);
  if (!cls) return false;
  if (program.method(cls, "__iter__")) return true;
  // A loader asks a data set for its length; config["lr"] has none.
  return program.method(cls, "__getitem__") &&
         (program.method(cls, "__len__") || !has_known_bases(program, cls));
}

namespace {

// models.__dict__[name](...), where models is torchvision's.
bool picks_torchvision_model(const CallRef& call) {
  const Ref function{call.module, call.call->function};
  if (function.kind() != Kind::subscript) return false;
  const Ref table = function.child(Field::value);
  return table.kind() == Kind::attribute && table.child(Field::attribute).text() == "__dict__" &&
         table.module->qualified(table.child(Field::object).node) == "torchvision.models";
}

}  // namespace

bool has_batch_norm(const Program& program, const Wrap& wrap) {
  // SyncBatchNorm.convert_sync_batchnorm(model): there is something to convert.
  for (const CallRef& convert : program.calls_named("convert_sync_batchnorm"))
    if (program.enclosing_function(convert.ref()) == program.enclosing_function(wrap.call.ref()))
      return true;
  for (const Source& source : program.module_sources(wrap.module)) {
    const CallRef call = program.as_call(source.ref);
    if (call && (call.call->api == Api::torchvision_model || picks_torchvision_model(call)))
      return true;
  }
  if (wrap.classes.empty()) return false;
  const std::vector<ClassRef> classes = wrapped_classes(program, wrap);
  for (const CallRef& call : program.calls(Api::batch_norm)) {
    const ClassRef owner = program.enclosing_class(call.ref());
    if (std::find(classes.begin(), classes.end(), owner) != classes.end()) return true;
  }
  return false;
}

}  // namespace bench::pitfalls::facts
