#include "scenarios/pitfalls/metrics/padded_metric.hpp"

#include "scenarios/pitfalls/data/left_out_sampler.hpp"
#include "scenarios/pitfalls/data/loader_trails.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/frameworks/engine_runs.hpp"
#include "scenarios/pitfalls/metrics/loss_alone.hpp"
#include "scenarios/pitfalls/metrics/phase_loops.hpp"
#include "scenarios/pitfalls/metrics/reductions.hpp"
#include "scenarios/pitfalls/metrics/torchmetrics.hpp"
#include "scenarios/pitfalls/metrics/training_reductions.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::Module;
using diagnose::NodeId;
using diagnose::Op;

namespace {

bool tells_size(std::string_view text) {
  return facts::contains(text, "len(") || facts::contains(text, "num_samples") ||
         facts::contains(text, "dataset_size") || facts::contains(text, "total_size");
}

// gather(predictions)[:dataset_len], where every caller hands over the length of a data set.
bool is_length_handed_over(const Program& program, Ref bound) {
  if (bound.kind() != Kind::identifier || !says_any(bound.text(), {"len", "size", "num", "total"}))
    return false;
  const auto& sources = program.sources(bound);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const auto& source) {
    const CallRef length = program.as_call(source.ref);
    return length && length.call->name == "len" &&
           says_any(length.positional(0).text(), {"data", "_ds", "ds_", "set"});
  });
}

// predictions[:len(dataset)]; key[len("module."):] cuts off what stands in front.
bool cuts_at_size(const Program& program, Ref slice) {
  const std::string_view text = slice.text();
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  if (tells_size(text.substr(colon + 1))) return true;
  return colon == 0 &&
         is_length_handed_over(program, slice.with(slice.module->tree()[slice.node].first_child));
}

// padded[: len(own)] = own, alone or in a row of targets, cuts off nothing.
bool is_stored_into(const diagnose::SyntaxTree& tree, NodeId node) {
  NodeId target = node;
  if (const NodeId row = tree[node].parent; tree[row].kind == Kind::tuple) target = row;
  return tree[target].field == Field::left && tree[tree[target].parent].kind == Kind::assignment;
}

// predictions[:len(dataset)] cuts off what the sampler has repeated; `seen != len(dataset)` is a
// program that knows of it.
bool knows_of_padding(const Program& program) {
  // np.unique(ids, return_index=True) keeps one of each: the evaluators for COCO merge what ranks
  // found that way.
  const auto unique = program.calls_named("unique");
  if (program.mentions("CocoEvaluator") ||
      std::any_of(unique.begin(), unique.end(),
                  [](const CallRef& call) { return call.keyword("return_index"); }))
    return true;
  for (const Module* module : program.modules()) {
    const auto& tree = module->tree();
    for (const NodeId node : module->nodes_of(Kind::subscript))
      if (const NodeId part = tree.child(node, Field::subscript);
          part != diagnose::kNoNode && tree[part].kind == Kind::slice &&
          !is_stored_into(tree, node) && cuts_at_size(program, {module, part}))
        return true;
    for (const NodeId node : module->nodes_of(Kind::comparison)) {
      const std::string_view text = tree.text(node);
      // `len(dataset) % world_size != 0` around a warning changes nothing about it.
      if ((tree[node].op == Op::equal || tree[node].op == Op::not_equal) &&
          facts::contains(text, "len(") && facts::contains(text, "dataset") &&
          !facts::contains(text, "%"))
        return true;
    }
  }
  return false;
}

// The test parts of these data sets of torchvision have 10,000 (MNIST and its kin, CIFAR), 26,032
// (SVHN) and 8,000 (STL10) samples, the validation part of ImageNet 50,000: 2 to 16 ranks divide
// them where they are a power of two. Numbers: torchvision's documentation of each class.
bool divides_as_a_rule(const Program& program, Ref dataset) {
  const auto calls = dataset ? facts::calls_behind(program, dataset) : std::vector<Ref>{};
  return std::any_of(calls.begin(), calls.end(), [&](const Ref& made) {
    const CallRef call = program.as_call(made);
    if (!call) return false;
    const std::string_view name = call.call->name;
    for (const char* each :
         {"MNIST", "FashionMNIST", "KMNIST", "CIFAR10", "CIFAR100", "SVHN", "STL10", "ImageNet"})
      if (name == each) return true;
    // The same samples read from their folders.
    return name == "ImageFolder" && program.mentions("imagenet");
  });
}

// metric.update(...) of torchmetrics in the loop, or metric(...): compute() reduces what it holds.
MetricSum torchmetric_in(const Program& program, Ref loop) {
  for (const CallRef& call : facts::calls_in(loop)) {
    const bool adds = call.call->name == "update" || call.call->name == "forward";
    const Ref metric = adds ? call.receiver() : call.ref().with(call.call->function);
    if (metric && (adds || !program.calls_named("compute").empty()) &&
        is_torchmetric(program, metric))
      return {call.ref(), std::string(metric.text())};
  }
  return {};
}

// features.index_copy_(0, index, out) and evaluators of COCO, which take each image once: what the
// sampler repeats falls on its first place.
bool keeps_each_once(Ref loop) {
  const auto calls = facts::calls_in(loop);
  return std::any_of(calls.begin(), calls.end(), [](const CallRef& call) {
    return call.call->name == "index_copy_" || call.call->name == "scatter_" ||
           (call.receiver() && says_any(call.receiver().text(), {"coco"}));
  });
}

// results[image_id] = out, and which sample it is: index += 1.
bool is_stored_by_key(const MetricSum& sum) {
  const std::string name = facts::lowered(sum.name);
  if (name == "idx" || name == "index" || name == "global_idx") return true;
  return sum.at.kind() == Kind::assignment && sum.at.child(Field::left).kind() == Kind::subscript;
}

// Forward passes whose results are added up, on every rank, with a reduction that serves them.
MetricSum reduced_sum(const Program& program, Ref loop, const CallRef& loader,
                      const std::vector<Reduction>& reductions) {
  if (program.guarded_by_rank(loop) == diagnose::RankTest::main_only || keeps_each_once(loop) ||
      !(program.is_evaluation(loop) || is_run_over_shard(program, loop, loader)))
    return {};
  if (program.mentions("torchmetrics")) return torchmetric_in(program, loop);
  if (!program.enclosing_function(loop)) return {};  // what is reduced cannot be told apart there
  std::vector<Reduction> others = reductions;
  std::erase_if(others, [&](const Reduction& each) { return is_of_training(program, each, loop); });
  if (others.empty()) return {};
  const MetricSum sum = first_sum(program, loop);
  if (!sum || is_stored_by_key(sum)) return {};
  if (may_reduce(program, loop, sum.name, others)) return sum;
  // Another one beside it: correct += ... of losses.update(loss), correct += ...
  const auto sums = sums_of_metrics(program, loop);
  const auto reduced = std::find_if(sums.begin(), sums.end(), [&](const MetricSum& each) {
    return !is_stored_by_key(each) && may_reduce(program, loop, each.name, others);
  });
  return reduced == sums.end() ? MetricSum{} : *reduced;
}

// The accuracy on the training data, or a sampler that evaluations do without.
bool is_training_data(const Program& program, Ref loop, const CallRef& loader,
                      const CallRef& sampler) {
  const Ref dataset = loader.argument(0, "dataset");
  const Ref drawn = loader.keyword("sampler");  // samplers["train"]
  return says_any(program.assigned_name(loader.ref()), {"train"}) ||
         (dataset && says_any(dataset.text(), {"train"})) ||
         (drawn && says_any(drawn.text(), {"train"})) || is_sampled_for_training(program, loader) ||
         is_sampler_of_training(program, loader, sampler) ||
         is_sampler_left_out(program, loop, sampler) ||
         is_left_out_on_every_trail(program, goes_over(program, loop), loader, sampler);
}

// The metrics of one loop, whatever its loaders are called: that it evaluates is seen.
void add_metrics(const Program& program, Ref loop, const std::vector<Reduction>& reductions,
                 std::vector<PaddedMetric>& out) {
  for (const CallRef& loader : loaders_of(program, goes_over(program, loop))) {
    const CallRef sampler = sampler_of(program, loader);
    if (!sampler || divides_as_a_rule(program, loader.argument(0, "dataset")) ||
        is_training_data(program, loop, loader, sampler))
      continue;
    const MetricSum sum = reduced_sum(program, loop, loader, reductions);
    if (!sum) return;
    out.push_back({sampler, sum, loader,
                   !program.mentions("torchmetrics") &&
                       reduces_losses_alone(program, loop, sum, reductions)});
  }
}

}  // namespace

std::vector<PaddedMetric> padded_metrics(const Program& program) {
  std::vector<PaddedMetric> out;
  const std::vector<Reduction> reductions = reductions_of(program);
  if (knows_of_padding(program)) return out;
  // Metrics of ignite reduce what they hold over the ranks.
  if (program.mentions("ignite.metrics"))
    for (const EngineRun& each : engine_runs(program))
      if (each.evaluates && !divides_as_a_rule(program, each.loader.argument(0, "dataset")))
        out.push_back({each.sampler, {each.run.ref(), std::string(each.run.receiver().text())}});
  if (reductions.empty() && !program.mentions("torchmetrics")) return out;
  for (const Module* module : program.modules())
    for (const NodeId node : module->loops())
      if (const Ref loop{module, node}; goes_over(program, loop))
        add_metrics(program, loop, reductions, out);
  return out;
}

}  // namespace bench::pitfalls
