#include "scenarios/pitfalls/data/unseen_shards.hpp"

#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/metrics/evaluation_loops.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::Source;

bool shows_sampler(const Program& program, Ref loop) {
  const Ref right = loop.child(Field::right);
  const Ref iterable = right ? program.strip_iterable(right) : Ref{};
  if (!iterable || !loaders_of(program, iterable).empty()) return false;
  const std::string sampler = std::string(iterable.text()) + ".sampler";
  const auto calls = program.calls_named("set_epoch");
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    if (call.receiver().text() != sampler || call.module != loop.module) return false;
    return sampler.starts_with("self.")
               ? program.enclosing_class(call.ref()) == program.enclosing_class(loop)
               : program.enclosing_function(call.ref()) == program.enclosing_function(loop);
  });
}

namespace {

// What stands in front of `=`: of val_loader, sampler = make_loader(...) too.
std::string_view target_of(const Program& program, Ref made) {
  const auto& tree = made.module->tree();
  const diagnose::NodeId around = tree[made.node].parent;
  return tree[around].kind == Kind::assignment ? made.with(tree.child(around, Field::left)).text()
                                               : program.assigned_name(made);
}

// make_loader(data, rank, world_size): what else would it need both for?
bool is_given_rank_and_size(const Program& program, const CallRef& maker) {
  const auto given = facts::arguments_of(maker);
  return std::any_of(given.begin(), given.end(), [&](Ref each) { return program.is_rank(each); }) &&
         std::any_of(given.begin(), given.end(),
                     [&](Ref each) { return program.is_world_size(each); });
}

}  // namespace

bool is_asked_to_shard(const Program& program, Ref loop) {
  const Ref right = loop.child(Field::right);
  const Ref iterable = right ? program.strip_iterable(right) : Ref{};
  if (!iterable) return false;
  const auto& sources = program.sources(iterable);
  const auto asks = [&](const diagnose::Source& source) {
    const CallRef maker = program.as_call(source.ref);
    const bool given = source.how == Source::How::value || source.how == Source::How::element;
    if (!maker || !given || maker.call->api != Api::none || program.callee(maker) ||
        program.class_of_call(maker) || !says_any(maker.call->name, {"loader"}))
      return false;
    for (const char* flag : {"ddp", "distributed", "is_distributed", "is_ddp", "use_ddp"})
      if (const Ref value = maker.keyword(flag);
          program.written(value).kind() == Kind::true_literal)
        return true;
    return is_given_rank_and_size(program, maker);
  };
  const auto asks_for_evaluation = [&](const diagnose::Source& source) {
    return asks(source) &&
           says_any(target_of(program, source.ref), {"val", "test", "eval", "dev"}) &&
           !says_any(target_of(program, source.ref), {"train"});
  };
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), asks_for_evaluation);
}

namespace {

// items[rank::world], Subset(data, range(rank, n, world)), data.shard(num_shards=world,
// index=rank), split_dataset_by_node(data, rank, world), also by way of names.
bool is_dealt_out(const Program& program, Ref dataset) {
  if (!dataset || !program.comes_from_rank(dataset)) return false;
  std::string text = text_behind(program, dataset);
  const auto& tree = dataset.module->tree();
  for (diagnose::NodeId at = dataset.node; at < tree[dataset.node].last; ++at)
    if (tree[at].kind == Kind::identifier) text += " " + text_behind(program, dataset.with(at));
  return holds_any(text,
                   {".shard(", "split_dataset_by_node(", "split_by_node", "rank::", "rank():"}) ||
         (facts::contains(text, "Subset(") && holds_any(text, {"range(", "::"}));
}

// SequentialDistributedSampler(data, rank=rank) of another file: by its name, or what it is given,
// each rank draws a part.
bool draws_a_part(const Program& program, Ref sampler) {
  if (!sampler) return false;
  const auto& sources = program.sources(sampler);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef made = program.as_call(source.ref);
    return made && made.call->api == Api::none && made.positional(0) &&
           says_any(made.call->name, {"sampler"}) &&
           says_any(made.call->name, {"dist", "shard", "rank", "node"});
  });
}

}  // namespace

bool goes_over_dealt_data(const Program& program, Ref loop) {
  const Ref over = goes_over(program, loop);
  const Ref iterable = over ? program.strip_iterable(over) : Ref{};
  if (!iterable) return false;
  const auto loaders = loaders_of(program, iterable);
  return !loaders.empty() &&
         std::all_of(loaders.begin(), loaders.end(), [&](const CallRef& loader) {
           return !sampler_of(program, loader) &&
                  (is_evaluation_loader(program, loader) || is_evaluation_loop(program, loop) ||
                   is_loop_of_evaluation(program, loop)) &&
                  (is_dealt_out(program, loader.argument(0, "dataset")) ||
                   draws_a_part(program, loader.argument(3, "sampler")));
         });
}

}  // namespace bench::pitfalls
