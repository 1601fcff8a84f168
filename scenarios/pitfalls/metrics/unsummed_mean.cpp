#include "scenarios/pitfalls/metrics/unsummed_mean.hpp"

#include "scenarios/pitfalls/metrics/step_sums.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <vector>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;

namespace {

// Something calls backward() on the name: a share of a gradient is no mean.
bool is_differentiated(const Program& program, std::string_view name) {
  const auto backwards = program.calls_named("backward");
  return std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
    return facts::loss_of(backward).text() == name;
  });
}

// total / world_size, where the program shows that the divisor is the number of ranks.
bool divides_by_ranks(const Program& program, Ref value) {
  return value.kind() == Kind::binary &&
         value.module->tree()[value.node].op == diagnose::Op::divide &&
         program.is_world_size(value.child(Field::right));
}

// len(sets[x]) of sizes[phase], where sizes = {x: len(sets[x]) for x in phases}.
CallRef length_of_phase(const Program& program, Ref divisor) {
  if (divisor.kind() != Kind::subscript) return {};
  const auto& sources = program.sources(divisor.child(Field::value));
  if (sources.size() != 1 || sources.front().ref.kind() != Kind::comprehension) return {};
  const Ref made = sources.front().ref;
  const Ref pair = made.with(made.module->tree()[made.node].first_child);
  return pair.kind() == Kind::pair ? program.as_call(pair.child(Field::value)) : CallRef{};
}

// The loaders are made in the same way: {x: DataLoader(sets[x]) for x in phases}.
bool is_length_of_phase(const Program& program, Ref divisor, Ref data) {
  const CallRef length = length_of_phase(program, divisor);
  if (!length || length.call->name != "len" || !length.positional(0)) return false;
  const Ref measured = length.positional(0);
  return measured.kind() == Kind::subscript && data.kind() == Kind::subscript &&
         measured.text() == data.text();
}

// len(data), len(loader.dataset), also by a name of its own.
bool is_length_of(const Program& program, Ref divisor, Ref loop, Ref data) {
  const auto is_data = [&](Ref measured) {
    if (measured.kind() == Kind::attribute && measured.child(Field::attribute).text() == "dataset")
      return measured.child(Field::object).text() ==
             program.strip_iterable(loop.child(Field::right)).text();
    if (measured.module == data.module && program.same_variable(measured, data)) return true;
    const auto& mine = program.sources(measured);
    const auto& others = program.sources(data);
    return mine.size() == 1 && others.size() == 1 && mine.front().ref == others.front().ref &&
           mine.front().element == others.front().element;
  };
  if (is_length_of_phase(program, divisor, data)) return true;
  const auto& sources = program.sources(divisor);
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           const CallRef length = program.as_call(source.ref);
           return length && length.call->name == "len" && !length.receiver() &&
                  length.positional(0) && is_data(length.positional(0));
         });
}

// A part of a division that is told already.
bool within(const std::vector<UnsummedMean>& found, Ref division) {
  return !found.empty() &&
         division.module->tree().contains(found.back().division.node, division.node);
}

bool speaks_of_ranks(std::string_view text) {
  const std::string plain = facts::lowered(text);
  return facts::contains(plain, "world") || facts::contains(plain, "size()") ||
         facts::contains(plain, "gpus") || facts::contains(plain, "replicas");
}

}  // namespace

std::vector<UnsummedMean> shares_of_dataset(const Program& program, Ref loop,
                                            const CallRef& sampler) {
  std::vector<UnsummedMean> out;
  const Ref data = sampler.argument(0, "dataset");
  const VariableNames sums = metrics_added_in(program, loop);
  if (!data || sums.empty()) return out;
  const Ref body = body_around(program, loop);
  const std::vector<Assigned> assigned = assignments_in(body);
  // total * world_size: it is made up for by hand.
  if (std::any_of(assigned.begin(), assigned.end(), [&](const Assigned& each) {
        return sums.contains(each.name) && each.value && speaks_of_ranks(each.value.text());
      }))
    return out;
  const auto& tree = body.module->tree();
  for (diagnose::NodeId node = body.node; node < tree[body.node].last; ++node) {
    const Ref division = body.with(node);
    const bool divides =
        division.kind() == Kind::binary || division.kind() == Kind::augmented_assignment;
    if (!divides || tree[node].op != diagnose::Op::divide || tree.contains(loop.node, node) ||
        speaks_of_ranks(statement_of(division).text()) ||
        !is_length_of(program, division.child(Field::right), loop, data))
      continue;
    const VariableNames names = variables_in(division.child(Field::left));
    const auto metric = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
      return sums.contains(name) && !is_differentiated(program, name);
    });
    if (metric != names.end() && !within(out, division)) out.push_back({division, *metric});
  }
  return out;
}

UnsummedMean unsummed_mean(const Program& program, Ref loop) {
  const VariableNames sums = metrics_added_in(program, loop);
  if (sums.empty()) return {};
  const std::vector<Assigned> assigned = assignments_in(body_around(program, loop));
  for (const Assigned& each : assigned) {
    if (!divides_by_ranks(program, each.value)) continue;
    const Ref divided = each.value.child(Field::left);
    const VariableNames names = behind(variables_in(divided), assigned);
    const auto metric = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
      return sums.contains(name) && !is_differentiated(program, name);
    });
    if (metric != names.end() && !is_differentiated(program, each.name))
      return {each.value, *metric};
  }
  return {};
}

}  // namespace bench::pitfalls
