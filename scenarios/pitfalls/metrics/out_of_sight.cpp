#include "scenarios/pitfalls/metrics/out_of_sight.hpp"

#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/files/saved_states.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <cctype>
#include <string>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::RankTest;

namespace {

// Packages whose functions compute what they are given, on the process that calls them.
constexpr std::string_view kComputingPackages[] = {
    "sklearn", "numpy", "scipy", "torch", "torchvision", "torchmetrics", "nltk", "pandas",
    "evaluate", "json", "pickle", "os", "copy", "collections", "jiwer", "rouge", "math",
    "pycocotools", "matplotlib", "editdistance", "sacrebleu", "tqdm", "wandb", "seqeval",
    "itertools",
    // What logs, counts, draws and writes.
    "logging", "statistics", "csv", "mlflow", "time", "cv2", "rich", "random", "re", "sys",
    "datetime", "functools", "typing", "pathlib", "shutil", "warnings", "gc", "tensorboardX",
    "tensorboard", "neptune", "comet_ml", "PIL", "skimage", "seaborn", "plotly", "loguru", "h5py",
    "yaml", "timm", "einops", "prettytable", "tabulate", "psutil", "io", "glob", "pprint",
    "operator", "heapq", "uuid", "hashlib", "tempfile", "subprocess", "threading", "traceback",
    "dataclasses", "contextlib", "termcolor", "colorama", "nibabel", "soundfile", "librosa"};

// log_accs(preds) after from project.metrics import log_accs, where project is not there.
bool is_of_missing_file(const Program& program, const CallRef& call) {
  if (call.call->api != Api::none || program.callee(call) || program.class_of_call(call))
    return false;
  const std::string_view path = call.call->path;
  const std::string_view package = path.substr(0, path.find('.'));
  return !path.empty() && package.size() < path.size() &&
         std::find(std::begin(kComputingPackages), std::end(kComputingPackages), package) ==
             std::end(kComputingPackages);
}

// preds.append(x) and preds.extend(x)
bool collects(Ref addition) {
  if (addition.kind() != Kind::call) return false;
  const std::string_view function = addition.child(Field::function).text();
  return function.ends_with(".append") || function.ends_with(".extend");
}

}  // namespace

bool is_handed_out_of_sight(const Program& program, Ref loop, const MetricSum& sum) {
  if (!collects(sum.at)) return false;
  const auto& tree = loop.module->tree();
  const Ref body = body_around(program, loop);
  VariableNames names{sum.name};
  // preds = np.concatenate(preds)
  for (const Assigned& each : assignments_in(body))
    if (each.target > tree[loop.node].last && meet(variables_in(each.value), names)) {
      const CallRef made = program.as_call(each.value);
      if (made && !is_of_missing_file(program, made)) names.insert(each.name);
    }
  const auto calls = facts::calls_in(body);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return call.call->node > tree[loop.node].last && is_of_missing_file(program, call) &&
           meet(variables_in(call.ref().child(Field::arguments)), names);
  });
}

namespace {

bool names_evaluation(std::string_view name) {
  return says_any(name, {"val", "eval", "test"}) && !says_any(name, {"train"});
}

// The loader has a DistributedSampler in every run, and serves an evaluation.
bool is_always_sharded(const Program& program, Ref argument) {
  if (argument.kind() != Kind::identifier) return false;
  const auto loaders = loaders_of(program, argument);
  return !loaders.empty() &&
         std::all_of(loaders.begin(), loaders.end(), [&](const CallRef& loader) {
           const auto samplers = program.sources(loader.keyword("sampler"));
           return sampler_of(program, loader) &&
                  (names_evaluation(argument.text()) || is_evaluation_loader(program, loader)) &&
                  std::none_of(samplers.begin(), samplers.end(), [](const auto& source) {
                    return source.ref.kind() == Kind::none_literal;
                  });
         });
}

// if psnr > best: torch.save(...), on every rank, with what the call gives.
bool chooses_by(const Program& program, const CallRef& call) {
  const auto& tree = call.module->tree();
  const Ref line = call.ref().with(tree[call.call->node].parent);
  if (line.kind() != Kind::assignment || line.child(Field::right) != call.ref()) return false;
  const VariableNames figures = variables_in(line.child(Field::left));
  for (const CallRef& save : calls_that_save(program)) {
    if (save.module != call.module || save.call->node < call.call->node ||
        program.enclosing_function(save.ref()) != program.enclosing_function(call.ref()) ||
        program.guarded_by_rank(save.ref()) != RankTest::none)
      continue;
    const auto guards = program.guards(save.ref());
    if (std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
          return guard.holds && guard.condition.kind() == Kind::comparison &&
                 guard.condition.node > call.call->node &&
                 tree.contains(tree[guard.condition.node].parent, save.call->node) &&
                 meet(variables_in(guard.condition), figures);
        }))
      return true;
  }
  return false;
}

// evaluate_distributed(...), evaluate(net, loader, rank, world_size): it may well reduce.
bool knows_of_ranks(const Program& program, const CallRef& call) {
  if (says_any(call.call->name, {"dist", "ddp", "gather", "reduce", "sync", "rank"})) return true;
  const auto given = facts::arguments_of(call);
  return std::any_of(given.begin(), given.end(), [&](Ref each) {
    return program.is_rank(each) || program.is_local_rank(each) || program.is_world_size(each) ||
           says_any(each.text(), {"rank", "world", "group"});
  });
}

}  // namespace

std::vector<CallRef> evaluations_that_choose(const Program& program,
                                             const std::vector<Reduction>& reductions) {
  std::vector<CallRef> out;
  if (!reductions.empty() || program.mentions("torchmetrics")) return out;
  for (const CallRef& call : program.calls_that(names_evaluation)) {
    if (std::isupper(static_cast<unsigned char>(call.call->name.front())) != 0 ||
        !is_of_missing_file(program, call) ||
        program.guarded_by_rank(call.ref()) != RankTest::none ||
        !facts::is_reachable(program, call.ref()) ||
        facts::only_without_distribution(program, call.ref()) || !chooses_by(program, call) ||
        knows_of_ranks(program, call))
      continue;
    const auto given = facts::arguments_of(call);
    if (std::any_of(given.begin(), given.end(),
                    [&](Ref argument) { return is_always_sharded(program, argument); }))
      out.push_back(call);
  }
  return out;
}

}  // namespace bench::pitfalls
