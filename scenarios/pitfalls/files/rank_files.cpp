#include "scenarios/pitfalls/files/rank_files.hpp"

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::NodeId;

namespace {

// np.savetxt(f"part.{rank}.txt", ...), also where the path has a name of its own.
bool is_named_by_rank(const Program& program, const CallRef& call) {
  const auto is_path = [&](Ref value) {
    return facts::contains(value.text(), "{") && program.mentions_rank(value);
  };
  if (is_path(call.ref())) return true;
  const auto& tree = call.module->tree();
  for (NodeId at = call.call->node; at < tree[call.call->node].last; ++at) {
    if (tree[at].kind != Kind::identifier) continue;
    const auto& sources = program.sources(call.ref().with(at));
    if (std::any_of(sources.begin(), sources.end(),
                    [&](const diagnose::Source& source) { return is_path(source.ref); }))
      return true;
  }
  return false;
}

bool writes_results(const CallRef& call) {
  for (const std::string_view name : {"savetxt", "save", "savez", "dump", "to_csv", "to_pickle"})
    if (call.call->name == name) return true;
  return false;
}

// torch.save(results, path), of what the loop collects.
bool stores(const CallRef& call, const MetricSum& sum) {
  const Ref arguments = call.ref().child(diagnose::Field::arguments);
  return sum && arguments && variables_in(arguments).contains(sum.name);
}

// "{}_scores.npy" of a path that the call is given.
std::vector<std::string> patterns_in(const Program& program, const CallRef& call) {
  std::vector<std::string> out;
  const auto add_from = [&](Ref part) {
    const auto& tree = part.module->tree();
    for (NodeId at = part.node; at < tree[part.node].last; ++at) {
      if (tree[at].kind != Kind::string) continue;
      const auto text = program.string(part.with(at));
      if (text && facts::contains(*text, "{}")) out.push_back(*text);
    }
  };
  add_from(call.ref());
  if (const CallRef path = program.made_by(call.positional(0));
      path && path.ref() != call.positional(0))
    add_from(path.ref());
  return out;
}

// np.load("{}_scores.npy".format(i)): what the ranks have written by this pattern is put together.
bool is_read_again(const Program& program, const CallRef& save) {
  const auto written = patterns_in(program, save);
  if (written.empty()) return false;
  const auto loads = program.calls_named("load");
  return std::any_of(loads.begin(), loads.end(), [&](const CallRef& load) {
    const auto read = patterns_in(program, load);
    return std::any_of(read.begin(), read.end(), [&](const std::string& each) {
      return std::find(written.begin(), written.end(), each) != written.end();
    });
  });
}

}  // namespace

namespace {

// history = run_epoch(loader); pd.DataFrame(history).to_csv(f"valid_r{rank}.csv"); dist.barrier(),
// in every function that calls the loop's own.
bool goes_through_files_of_callers(const Program& program, FunctionRef function) {
  const auto& sites = program.call_sites(function);
  return !sites.empty() && std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    const FunctionRef caller = program.enclosing_function(site.ref());
    if (!caller || caller == function) return false;
    const auto calls = facts::calls_in({caller.module, caller.function->body});
    const auto is_below = [&](const CallRef& call) { return call.call->node > site.call->node; };
    return std::any_of(calls.begin(), calls.end(),
                       [&](const CallRef& call) {
                         return is_below(call) && call.call->api == Api::barrier;
                       }) &&
           std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
             return is_below(call) && writes_results(call) && is_named_by_rank(program, call);
           });
  });
}

}  // namespace

bool goes_through_files(const Program& program, Ref loop) {
  const FunctionRef function = program.enclosing_function(loop);
  if (!function) return false;
  const Ref body{function.module, function.function->body};
  const auto calls = facts::calls_in(body);
  const MetricSum sum = first_sum(program, loop);
  const bool waits = std::any_of(calls.begin(), calls.end(), [](const CallRef& call) {
    return call.call->api == Api::barrier || call.call->name == "synchronize";
  });
  return std::any_of(calls.begin(), calls.end(),
                     [&](const CallRef& call) {
                       return writes_results(call) &&
                              (waits || stores(call, sum) || is_read_again(program, call)) &&
                              is_named_by_rank(program, call);
                     }) ||
         goes_through_files_of_callers(program, function);
}

}  // namespace bench::pitfalls
