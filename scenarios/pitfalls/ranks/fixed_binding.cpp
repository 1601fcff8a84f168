#include "scenarios/pitfalls/ranks/fixed_binding.hpp"

#include "diagnose/model/role_names.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/importers.hpp"
#include "scenarios/pitfalls/ranks/own_gpu.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Source;

namespace {

constexpr int kNames = 4;  // device -> ids -> index

// torch.device(...), torch.cuda.is_available(), str(index): they tell no process from another.
bool is_plain_call(const CallRef& call) {
  for (const std::string_view name : {"device", "is_available", "str", "int", "format"})
    if (call.call->name == name) return true;
  return false;
}

// The target is the name, or holds it: rank, gpu = join(), gpus[0] = rank.
bool gives(Ref target, std::string_view name) {
  if (target.kind() == Kind::identifier || target.kind() == Kind::attribute)
    return diagnose::last_word(target) == name;
  const auto& tree = target.module->tree();
  for (NodeId at = target.node; at < tree[target.node].last; ++at)
    if (tree[at].kind == Kind::identifier && tree.text(at) == name) return true;
  return false;
}

// Whether a value is built of what the script writes out, and of nothing else.
class Written {
 public:
  explicit Written(const Program& program) : program_(program) {}

  bool is_written(Ref expression, int depth) {
    if (!expression || depth > kNames) return false;
    if (!seen_.insert(expression).second) return true;
    const auto& tree = expression.module->tree();
    for (NodeId at = expression.node; at < tree[expression.node].last; ++at) {
      const Ref part = expression.with(at);
      if (const CallRef call = program_.as_call(part); call && !is_plain_call(call)) return false;
      const bool of_call = tree[at].field == Field::function || tree[at].field == Field::attribute;
      if (part.kind() == Kind::attribute && !of_call) {
        if (!is_written_name(part, depth)) return false;
        at = tree[at].last - 1;
      } else if (part.kind() == Kind::identifier && !of_call && !is_written_name(part, depth)) {
        return false;
      }
      // config["gpu"]: what a dictionary was made with may be stored anew for each rank.
      if (part.kind() == Kind::lambda || part.kind() == Kind::comprehension ||
          part.kind() == Kind::dictionary)
        return false;
    }
    return true;
  }

 private:
  // A name of the expression: PyTorch's own (torch.cuda), or a variable whose values are all
  // written out.
  bool is_written_name(Ref name, int depth) {
    const std::string package = name.module->qualified(name.node);
    if (package == "torch" || package.starts_with("torch.")) return true;
    const auto& sources = program_.sources(name);
    return !sources.empty() &&
           std::all_of(sources.begin(), sources.end(),
                       [&](const Source& source) {
                         return source.how == Source::How::value && source.ref != name &&
                                is_written(source.ref, depth + 1);
                       }) &&
           is_given_nothing_else(name, depth);
  }

  // No other place gives the name a value that may differ: `global gpu` in a function, or
  // worker.gpu = rank over what the class has by default.
  bool is_given_nothing_else(Ref name, int depth) {
    const std::string_view last = diagnose::last_word(name);
    if (last.empty() || !names_.insert(last).second) return true;
    // config.__dict__.update(options), setattr(config, key, value)
    const bool is_attribute = name.kind() == Kind::attribute;
    if (is_attribute && (program_.mentions("__dict__") || program_.mentions("setattr(") ||
                         program_.mentions("--" + std::string(last))))
      return false;  // --local_rank: whoever starts the script gives it
    for (const auto* module : program_.modules()) {
      const auto may_differ = [&](NodeId node) {
        const Ref assignment{module, node};
        const Ref value = assignment.child(Field::right);
        // Under a condition, params.local_rank = 0 is for some runs alone.
        return value && gives(assignment.child(Field::left), last) &&
               (!is_written(value, depth + 1) ||
                (is_attribute && !is_unconditional(program_, assignment)));
      };
      for (const diagnose::ListedKind kind : {diagnose::ListedKind(Kind::assignment),
                                              diagnose::ListedKind(Kind::augmented_assignment)}) {
        const auto& nodes = module->nodes_of(kind);
        if (std::any_of(nodes.begin(), nodes.end(), may_differ)) return false;
      }
    }
    return true;
  }

  const Program& program_;
  std::set<Ref> seen_;
  std::set<std::string_view> names_;
};

// The place, and the calls that lead to its function.
std::vector<Ref> ways_to(const Program& program, Ref place) {
  constexpr std::size_t kPlaces = 64;
  std::vector<Ref> out{place};
  for (std::size_t at = 0; at < out.size() && out.size() < kPlaces; ++at)
    if (const auto function = program.enclosing_function(out[at]))
      for (const CallRef& site : program.call_sites(function))
        if (std::find(out.begin(), out.end(), site.ref()) == out.end()) out.push_back(site.ref());
  return out;
}

// One run comes by both: they stand in one function, or are called from one, and not in two
// branches that exclude each other, as training and a test of what was trained do.
bool in_one_run(const Program& program, Ref a, Ref b) {
  const auto to_a = ways_to(program, a);
  const auto to_b = ways_to(program, b);
  return std::any_of(to_a.begin(), to_a.end(), [&](Ref one) {
    return std::any_of(to_b.begin(), to_b.end(), [&](Ref other) {
      return one.module == other.module &&
             program.enclosing_function(one) == program.enclosing_function(other) &&
             !facts::exclusive(one, other);
    });
  });
}

// def work(gpu): set_device(gpu), and a file that imports this one calls work(job.local_rank), if
// in a function alone: what it gives may differ.
bool is_called_by_importers(const Program& program, Ref binding) {
  const auto function = program.enclosing_function(binding);
  if (!function || function.function->parameters.empty()) return false;
  const std::string name(function.function->name);
  return facts::any_importer(
      program, *function.module, "and calls " + name, [&](std::string_view text) {
        return facts::contains(text, "." + name + "(") || facts::contains(text, " " + name + "(");
      });
}

bool meets_join(const Program& program, Ref binding) {
  std::vector<CallRef> joins;
  for (const Api api : {Api::init_process_group, Api::deepspeed})
    for (const CallRef& join : program.calls(api)) joins.push_back(join);
  return std::any_of(joins.begin(), joins.end(),
                     [&](const CallRef& join) { return in_one_run(program, binding, join.ref()); });
}

// if dist.get_rank() == 1: torch.cuda.set_device(1)
bool is_for_one_rank(const Program& program, Ref binding) {
  const auto guards = program.guards(binding);
  return program.guarded_by_rank(binding) != diagnose::RankTest::none ||
         std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
           return program.comes_from_rank(guard.condition);
         });
}

// os.environ["WORLD_SIZE"] = "1": the script makes a group of one process, whoever starts it.
bool sets_one_process(const Program& program) {
  const auto sizes = facts::settings_of(program, "WORLD_SIZE");
  return std::any_of(sizes.begin(), sizes.end(),
                     [&](Ref set) { return program.string(set.child(Field::right)) == "1"; });
}

// os.environ["CUDA_VISIBLE_DEVICES"] = "0,1", in every place: no rank is shown a GPU of its own.
bool shows_several(const Program& program) {
  const auto visible = visible_devices(program);
  return !visible.empty() && std::all_of(visible.begin(), visible.end(), [&](Ref devices) {
    const auto text = program.string(devices);
    return text ? facts::contains(*text, ",") : joins_several(program, devices);
  });
}

}  // namespace

bool is_written_for_all(const Program& program, Ref expression) {
  return Written(program).is_written(expression, 0);
}

bool check_fixed_binding(const Program& program, Report& report) {
  const auto bindings = program.calls(Api::set_device);
  if (bindings.empty() || program.uses(Api::device_context) || program.gpus().has_value() ||
      (program.mentions("CUDA_VISIBLE_DEVICES") && !shows_several(program)) ||
      !std::all_of(bindings.begin(), bindings.end(),
                   [&](const CallRef& binding) {
                     return is_written_for_all(program, binding.argument(0, "device")) &&
                            !is_for_one_rank(program, binding.ref());
                   }) ||
      sets_one_process(program))
    return false;
  for (const CallRef& init : program.calls(Api::init_process_group))
    if (init.keyword("device_id")) return false;
  for (const CallRef& binding : bindings) {
    if (facts::only_without_distribution(program, binding.ref()) ||
        facts::only_before_ranks(program, binding.ref()) ||
        !facts::is_reachable(program, binding.ref()) || !meets_join(program, binding.ref()) ||
        is_called_by_importers(program, binding.ref()))
      continue;
    in_no_trial(report.at(binding.argument(0, "device"), Confidence::likely,
                          "every rank binds the same device: all of them work on one GPU, and NCCL "
                          "stops with \"Duplicate GPU detected\""))
        .help = "Call torch.cuda.set_device(local_rank), with LOCAL_RANK of the environment.";
    return true;
  }
  return false;
}

}  // namespace bench::pitfalls
