#include "scenarios/pitfalls/wrappers/model_moves.hpp"

#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Source;

namespace {

// The model in model, DataParallel(model) and DDP(model).
Ref moved_object(const Program& program, const CallRef& move) {
  const CallRef wrapper = program.as_call(move.receiver());
  const bool wraps =
      wrapper && (wrapper.call->api == Api::data_parallel || wrapper.call->api == Api::ddp);
  return wraps ? wrapper.argument(0, "module") : move.receiver();
}

bool is_given(const CallRef& site, std::string_view name) {
  const auto given = facts::arguments_of(site);
  return !name.empty() &&
         std::any_of(given.begin(), given.end(), [&](Ref value) { return value.text() == name; });
}

// The parameter behind self.model of self.model = model, in the same method; the name itself for
// others.
Ref parameter_behind(const Program& program, Ref moved) {
  if (moved.kind() != diagnose::Kind::attribute ||
      moved.child(diagnose::Field::object).text() != "self")
    return moved;
  const auto inside = program.enclosing_function(moved);
  const auto& module = *moved.module;
  for (const std::uint32_t index :
       module.defs_of(moved.child(diagnose::Field::attribute).text(), true)) {
    const Ref value{&module, module.defs()[index].value};
    if (value && value.kind() == diagnose::Kind::identifier &&
        program.enclosing_function(value) == inside && facts::is_parameter(program, value))
      return value;
  }
  return moved;
}

bool wraps_in(const Program& program, const diagnose::FunctionRef& function) {
  const auto& wraps = program.wraps();
  return std::any_of(wraps.begin(), wraps.end(), [&](const diagnose::Wrap& wrap) {
    return program.enclosing_function(wrap.call.ref()) == function;
  });
}

// The calls that hand the model to a function that trains: it is given the optimizer, too, or it
// wraps what it moves.
std::vector<CallRef> handed_over(const Program& program, Ref moved, Ref model,
                                 std::string_view optimizer) {
  std::vector<CallRef> out;
  moved = parameter_behind(program, moved);
  if (moved.kind() != diagnose::Kind::identifier || !facts::is_parameter(program, moved))
    return out;
  const auto function = program.enclosing_function(moved);
  const bool wraps = wraps_in(program, function);
  for (const CallRef& site : program.call_sites(function)) {
    const Ref given = facts::argument_for(site, function, moved.text());
    if (given && (wraps || is_given(site, optimizer)) && program.same_variable(given, model))
      out.push_back(site);
  }
  return out;
}

}  // namespace

std::vector<ModelMove> moves_of_model(const Program& program, Ref model,
                                      std::string_view optimizer) {
  std::vector<ModelMove> out;
  for (const std::string_view method : {"to", "cuda"})
    for (const CallRef& move : program.calls_named(method)) {
      const Ref moved = moved_object(program, move);
      if (!moved) continue;
      if (program.same_variable(moved, model)) {
        out.push_back({move, move});
        continue;
      }
      for (const CallRef& site : handed_over(program, moved, model, optimizer))
        out.push_back({move, site});
    }
  return out;
}

namespace {

// model.cuda() above the optimizer and model.to(local_rank) below, where nothing says which GPU the
// former means: all ranks use the first one up to there.
bool leaves_the_first_gpu(const Program& program, const CallRef& optimizer,
                          const std::vector<ModelMove>& moves) {
  // utils.init_distributed_mode(args) of another file sets the device.
  if (program.uses(Api::set_device) || program.uses(Api::device_context) ||
      !program.uses(Api::init_process_group))
    return false;
  bool came = false;
  bool leaves = false;
  for (const ModelMove& move : moves) {
    const Ref device = move.call.argument(0, "device");
    const bool above = move.at.call->node < optimizer.call->node;
    if (above && device) return false;
    came = came || above;
    leaves = leaves || (move.at.call->node > optimizer.call->node && device &&
                        (program.is_local_rank(device) || program.is_rank(device)));
  }
  return came && leaves;
}

}  // namespace

bool is_moved_before(const Program& program, Ref model, const CallRef& optimizer,
                     const std::vector<ModelMove>& moves) {
  if (leaves_the_first_gpu(program, optimizer, moves)) return false;
  if (std::any_of(moves.begin(), moves.end(), [&](const ModelMove& move) {
        return move.at.call->node < optimizer.call->node ||
               (program.enclosing_function(move.at.ref()) !=
                    program.enclosing_function(optimizer.ref()) &&
                program.runs_before(move.at.ref(), optimizer.ref()));
      }))
    return true;
  const auto& sources = program.sources(model);
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef placed = program.as_call(source.ref);
    // self.model = self.model.cuda() below: an attribute has the values of all lines.
    const bool is_below =
        placed.module == optimizer.module && placed && placed.call->node > optimizer.call->node &&
        program.enclosing_function(placed.ref()) == program.enclosing_function(optimizer.ref());
    return placed && !is_below && (placed.call->name == "to" || placed.call->name == "cuda");
  });
}

}  // namespace bench::pitfalls
