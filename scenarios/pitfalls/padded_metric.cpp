#include "scenarios/pitfalls/padded_metric.hpp"

#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/loaders.hpp"
#include "scenarios/pitfalls/reductions.hpp"

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

// predictions[:len(dataset)] cuts off what the sampler has repeated; `seen != len(dataset)` is a
// program that knows of it.
bool knows_of_padding(const Program& program) {
  for (const Module* module : program.modules()) {
    const auto& tree = module->tree();
    for (const NodeId node : module->nodes_of(Kind::subscript))
      if (const NodeId part = tree.child(node, Field::subscript); part != diagnose::kNoNode &&
                                                                  tree[part].kind == Kind::slice &&
                                                                  tells_size(tree.text(part)))
        return true;
    for (const NodeId node : module->nodes_of(Kind::comparison)) {
      const std::string_view text = tree.text(node);
      if ((tree[node].op == Op::equal || tree[node].op == Op::not_equal) &&
          facts::contains(text, "len(") && facts::contains(text, "dataset"))
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
    return false;
  });
}

// Forward passes whose results are added up, on every rank, with a reduction that serves them.
MetricSum reduced_sum(const Program& program, Ref loop, const std::vector<Reduction>& reductions) {
  const diagnose::FunctionRef function = program.enclosing_function(loop);
  if (!function || program.guarded_by_rank(loop) == diagnose::RankTest::main_only ||
      !program.is_evaluation(loop))
    return {};
  const MetricSum sum = first_sum(program, loop);
  if (!sum || !may_reduce(program, loop, sum.name, reductions)) return {};
  return sum;
}

}  // namespace

MetricSum padded_metric(const Program& program, const CallRef& loader) {
  const std::vector<Reduction> reductions = reductions_of(program);
  if (reductions.empty() || program.mentions("torchmetrics") || knows_of_padding(program) ||
      divides_as_a_rule(program, loader.argument(0, "dataset")))
    return {};
  for (const Module* module : program.modules())
    for (const NodeId node : module->loops()) {
      const Ref loop{module, node};
      if (loop.kind() != Kind::for_statement) continue;
      const auto loaders = loaders_of(program, loop.child(Field::right));
      if (std::none_of(loaders.begin(), loaders.end(),
                       [&](const CallRef& each) { return each.ref() == loader.ref(); }))
        continue;
      if (const MetricSum sum = reduced_sum(program, loop, reductions)) return sum;
    }
  return {};
}

}  // namespace bench::pitfalls
