#include "scenarios/pitfalls/ranks/own_optimizers.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::RankTest;

namespace {

// LBFGS([temperature]) after temperature = torch.ones(1), both on the ranks that step: numbers of
// their own, which no other rank has.
bool is_of_own_tensors(const Program& program, const CallRef& made) {
  const Ref given = program.written(made.argument(0, "params"));
  if ((given.kind() != Kind::list && given.kind() != Kind::tuple) ||
      program.guarded_by_rank(made.ref()) == RankTest::none)
    return false;
  const auto& tree = given.module->tree();
  bool any = false;
  for (auto at = tree[given.node].first_child; at != diagnose::kNoNode;
       at = tree[at].next_sibling) {
    const auto& sources = program.sources(given.with(at));
    any = true;
    if (sources.empty() ||
        !std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
          const CallRef call = program.as_call(source.ref);
          return call && source.how == diagnose::Source::How::value &&
                 program.guarded_by_rank(source.ref) != RankTest::none &&
                 (call.call->api == Api::tensor_factory ||
                  call.call->path == "torch.nn.Parameter" ||
                  call.call->path == "torch.nn.parameter.Parameter" ||
                  call.call->path == "torch.autograd.Variable");
        }))
      return false;
  }
  return any;
}

// ddp = DDP(net), which every rank makes.
bool is_wrapped(const Program& program, Ref network) {
  const auto& wraps = program.wraps();
  return program.wrap_of(network) != nullptr ||
         std::any_of(wraps.begin(), wraps.end(), [&](const diagnose::Wrap& wrap) {
           return program.same_variable(wrap.call.argument(0, "module"), network);
         });
}

// Adam(policy.parameters()) after `if rank == 0: policy = Policy()`; on other ranks it is None.
bool is_of_own_network(const Program& program, const CallRef& made) {
  const CallRef given = program.made_by(made.argument(0, "params"));
  const RankTest ranks = program.guarded_by_rank(made.ref());
  if (!given || given.call->name != "parameters" || !given.receiver() || ranks == RankTest::none ||
      is_wrapped(program, given.receiver()))
    return false;
  bool any = false;
  for (const diagnose::Source& source : program.module_sources(given.receiver())) {
    if (source.ref.kind() == Kind::none_literal) continue;
    any = source.how == diagnose::Source::How::value && program.as_call(source.ref) &&
          program.guarded_by_rank(source.ref) == ranks;
    if (!any) return false;
  }
  return any;
}

}  // namespace

bool has_own_parameters(const Program& program, const CallRef& optimizer) {
  return is_of_own_tensors(program, optimizer) || is_of_own_network(program, optimizer);
}

}  // namespace bench::pitfalls
