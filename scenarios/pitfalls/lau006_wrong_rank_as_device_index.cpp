#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/nodes_of_job.hpp"
#include "scenarios/pitfalls/ranks/own_ranks.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// The script reads the local rank too, so it knows that the two differ; or its name for the value
// says that it ought to be the local one.
bool tells_ranks_apart(const Program& program, Ref rank) {
  for (const char* word : {"LOCAL_RANK\"", "LOCAL_RANK'", "SLURM_LOCALID"})
    if (program.mentions(word)) return true;
  // torch.cuda.set_device(args.local_rank)
  const auto binds = program.calls(Api::set_device);
  if (std::any_of(binds.begin(), binds.end(), [&](const CallRef& call) {
        const Ref device = call.argument(0, "device");
        return device && device.kind() != Kind::binary && program.is_local_rank(device) &&
               !program.is_rank(device);
      }))
    return true;
  const auto& sources = program.sources(rank);
  return facts::contains(facts::lowered(rank.text()), "local_rank") &&
         std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           const CallRef call = program.as_call(source.ref);
           return program.environment_name(source.ref) == "RANK" ||
                  (call && call.call->name == "get_rank");
         });
}

// dist.get_rank(group=of_this_machine): one of the values that the rank may have is that of a
// group.
bool is_of_group(const Program& program, Ref rank) {
  const auto calls = facts::calls_behind(program, rank);
  return std::any_of(calls.begin(), calls.end(), [&](Ref made) {
    const CallRef call = program.as_call(made);
    return call && call.call->api == Api::get_rank && call.argument(0, "group");
  });
}

// args.local_rank here, and args.local_rank = dist.get_rank() only below, in the same function.
bool becomes_global_below(const Program& program, Ref rank) {
  if (rank.kind() != Kind::attribute) return false;
  const auto& module = *rank.module;
  const auto function = module.function_of(rank.node);
  bool below = false;
  for (const std::uint32_t index : module.defs_of(rank.child(Field::attribute).text(), true)) {
    const diagnose::Def& def = module.defs()[index];
    if (module.text(def.target) != rank.text()) continue;
    if (def.target < rank.node || module.function_of(def.target) != function ||
        !program.loops_around({&module, def.target}).empty())
      return false;
    below = true;
  }
  return below;
}

// rank = 0 in the branch for one process, where the device stands too.
bool is_number(const Program& program, Ref rank) {
  const auto& sources = program.sources(rank);
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [](const diagnose::Source& source) {
           return source.how == diagnose::Source::How::value && source.ref.kind() == Kind::integer;
         });
}

// device_id = local_rank + 2; node * gpus + local_rank is the global one.
bool counts_from_local(const Program& program, Ref rank) {
  const auto& sources = program.sources(rank);
  const auto is_offset = [&](const diagnose::Source& source) {
    if (source.how != diagnose::Source::How::value || source.ref.kind() != Kind::binary)
      return false;
    const auto is_local = [&](Ref part) {
      return program.is_local_rank(part) || program.is_spawn_rank(part) ||
             facts::contains(facts::lowered(part.text()), "local_rank");
    };
    const Ref left = source.ref.child(Field::left);
    const Ref right = source.ref.child(Field::right);
    return (is_local(left) && program.integer(right)) || (is_local(right) && program.integer(left));
  };
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), is_offset);
}

// model.start(opt.local_rank) for def start(self, rank): the object may be one that cannot be
// followed, so the name of the method tells.
bool takes_local_rank(const Program& program, Ref parameter) {
  const auto function = program.enclosing_function(parameter);
  if (!function || function.function->owner_class == diagnose::kNoNode ||
      function.function->makes_object())
    return false;
  const auto calls = program.calls_named(function.function->name);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    const Ref given = facts::argument_for(call, function, parameter.text());
    return given && program.is_local_rank(given) && !program.is_rank(given);
  });
}

// rank, and self.rank below self.rank = rank, of such a method.
bool is_handed_local_rank(const Program& program, Ref rank) {
  const auto& sources = program.sources(rank);
  if (std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
        return source.how == diagnose::Source::How::parameter &&
               takes_local_rank(program, source.ref);
      }))
    return true;
  if (rank.kind() != Kind::attribute || rank.child(Field::object).text() != "self") return false;
  const auto& defs = program.attribute_defs(rank.child(Field::attribute).text());
  return std::any_of(defs.begin(), defs.end(), [&](const auto& each) {
    const Ref value{each.module, each.def->value};
    return each.object == "self" && each.def->value != diagnose::kNoNode &&
           facts::is_parameter(program, value) && takes_local_rank(program, value);
  });
}

bool is_global(const Program& program, Ref rank) {
  return rank && program.is_rank(rank) && !program.is_local_rank(rank) &&
         !counts_from_local(program, rank) && !program.is_spawn_rank(rank) &&
         !is_of_group(program, rank) && !is_number(program, rank) &&
         !is_handed_local_rank(program, rank);
}

// In one branch of several the index is SLURM_PROCID itself, which counts the tasks of all nodes,
// or a name that holds it there.
bool is_task_of_job(const Program& program, Ref index, int depth = 0) {
  if (index.kind() != Kind::identifier && index.kind() != Kind::attribute &&
      index.kind() != Kind::subscript)
    return false;
  const auto& sources = program.sources(index);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    if (source.how != diagnose::Source::How::value) return false;
    return program.environment_name(source.ref) == "SLURM_PROCID" ||
           (depth == 0 && source.ref != index && is_task_of_job(program, source.ref, depth + 1));
  });
}

// What is put into a text: rank of f"cuda:{rank}", "cuda:{}".format(rank), "cuda:%d" % rank and
// "cuda:" + str(rank).
std::vector<Ref> parts_of_text(const Program& program, Ref text) {
  std::vector<Ref> parts;
  const auto& tree = text.module->tree();
  if (text.kind() == Kind::string) {
    for (auto at = tree[text.node].first_child; at != diagnose::kNoNode; at = tree[at].next_sibling)
      parts.push_back(text.with(at));
  } else if (text.kind() == Kind::binary) {
    const Ref right = text.child(Field::right);
    if (text.child(Field::left).kind() != Kind::string || !right) return parts;
    const CallRef number = program.as_call(right);
    parts.push_back(number && number.call->name == "str" ? number.positional(0) : right);
  } else if (const CallRef call = program.as_call(text); call && call.call->name == "format" &&
                                                         call.receiver() &&
                                                         call.receiver().kind() == Kind::string) {
    for (std::size_t i = 0; const Ref part = call.positional(i); ++i) parts.push_back(part);
  }
  return parts;
}

// The global rank in rank, f"cuda:{rank}" or torch.device("cuda", rank), or in what a name holds.
Ref global_rank_in(const Program& program, Ref device, int depth = 0) {
  constexpr int kSteps = 3;  // device -> torch.device(...) -> f"cuda:{rank}"
  if (!device || depth > kSteps || becomes_global_below(program, device)) return {};
  if (is_global(program, device) || is_task_of_job(program, device)) return device;
  if (const auto parts = parts_of_text(program, device); !parts.empty()) {
    const bool any =
        std::any_of(parts.begin(), parts.end(), [&](Ref part) { return is_global(program, part); });
    return any ? device : Ref{};
  }
  if (device.kind() == Kind::string) return {};
  // f"cuda:{rank}" if torch.cuda.is_available() else "cpu"
  if (device.kind() == Kind::conditional) {
    const auto& tree = device.module->tree();
    for (const std::size_t index : {0U, 2U})
      if (global_rank_in(program, device.with(tree.child_at(device.node, index)), depth + 1))
        return device;
    return {};
  }
  if (const CallRef call = program.as_call(device); call && call.call->api == Api::torch_device) {
    for (const std::size_t index : {0U, 1U})
      if (global_rank_in(program, call.positional(index), depth + 1)) return device;
    return {};
  }
  const auto& sources = program.sources(device);
  if (sources.size() != 1 || sources.front().how != diagnose::Source::How::value ||
      sources.front().ref == device)
    return {};
  return global_rank_in(program, sources.front().ref, depth + 1);
}

// run_workers(demo, 2) of a file that is not at hand.
bool is_handed_out_of_sight(const Program& program, Ref place) {
  const auto& tree = place.module->tree();
  const diagnose::NodeId list = tree[place.node].parent;
  if (list == diagnose::kNoNode || tree[list].kind != Kind::argument_list) return false;
  const CallRef taker = program.as_call(place.with(tree[list].parent));
  return taker && taker.call->api == Api::none && !program.callee(taker) &&
         !program.class_of_call(taker) && taker.call->name != "Process";
}

// def demo(rank): of a function that nothing here calls: what calls it may give it the local one.
bool is_given_out_of_sight(const Program& program, Ref device) {
  const auto function = program.enclosing_function(device);
  if (!function || !program.call_sites(function).empty() || program.is_spawned(function))
    return false;
  const auto places = program.handed_on(function);
  if (!std::all_of(places.begin(), places.end(),
                   [&](Ref place) { return is_handed_out_of_sight(program, place); }))
    return false;
  const auto& tree = device.module->tree();
  for (auto id = device.node; id < tree[device.node].last; ++id)
    if (const Ref name = device.with(id);
        facts::is_parameter(program, name) && program.is_rank(name))
      return true;
  return false;
}

// A comment shows how the script is started: torchrun --standalone, --nnodes=1.
bool is_said_to_be_one_node(const Program& program) {
  if (!program.launches().empty()) return false;
  for (const char* word : {"--standalone", "--nnodes=1 ", "--nnodes 1 ", "--nnodes=1\n"})
    if (facts::speaks_of(program, word)) return true;
  return facts::shows_one_node(program);
}

// os.environ["CUDA_VISIBLE_DEVICES"] = "0,1" in the script: the cards of one machine.
bool names_its_cards(const Program& program) {
  return program.launches().empty() && program.mentions("CUDA_VISIBLE_DEVICES") &&
         facts::visible_gpus(program).value_or(0) > 1;
}

// mp.spawn(worker, ...), Process(target=worker, ...): what they start stands on one machine.
bool starts_processes_here(const Program& program) {
  const auto processes = program.calls_named("Process");
  return !program.calls(Api::spawn).empty() ||
         std::any_of(processes.begin(), processes.end(), [&](const CallRef& process) {
           return process.keyword("target") && program.innermost_loop(process.ref());
         });
}

// self.device = torch.device(f"cuda:{rank}") that nothing reads: the object alone asks for no GPU.
bool is_never_read(const Program& program, Ref device) {
  const auto& tree = device.module->tree();
  const Ref line = device.with(tree[device.node].parent);
  const Ref left = line.kind() == Kind::assignment ? line.child(Field::left) : Ref{};
  const diagnose::ClassRef cls = program.enclosing_class(device);
  if (!cls || left.kind() != Kind::attribute || left.child(Field::object).text() != "self")
    return false;
  const std::string_view name = left.child(Field::attribute).text();
  const std::string owner = facts::lowered(cls.cls->name);
  for (const diagnose::Module* module : program.modules())
    for (diagnose::NodeId id = 0; id < module->tree().size(); ++id) {
      const Ref use{module, id};
      if (use.kind() != Kind::attribute || use == left ||
          use.child(Field::attribute).text() != name)
        continue;
      const Ref object = use.child(Field::object);
      if (!module->qualified(id).empty()) continue;  // torch.device itself
      if (program.enclosing_class(use) == cls ||
          facts::contains(facts::lowered(object.text()), owner))
        return false;
    }
  return program.derived_of(cls).empty() && cls.cls->bases.empty();
}

// torchrun --nnodes=$NNODES ...: a line for a job of several nodes, whose number is not written
// out.
bool leaves_nodes_open(const Program& program) {
  const auto& launches = program.launches();
  return std::any_of(launches.begin(), launches.end(), [](const diagnose::LaunchLine& launch) {
    return !launch.nodes() &&
           (launch.flags.contains("nnodes") || launch.flags.contains("node-rank"));
  });
}

// An error where the script or its launch lines know of several nodes, a note where they know one
// node, and where lines are known of which none speaks of several. What a launcher out of sight
// decides is a warning, also where the script knows of two ranks: on one node they are the same.
Severity severity_of(const Program& program, Ref where) {
  const bool counts_nodes = facts::computes_global_rank(program);
  if (facts::is_single_node(program) || is_given_out_of_sight(program, where) ||
      (names_its_cards(program) && !facts::expects_nodes(program) && !counts_nodes))
    return Severity::info;
  if (program.uses(Api::hvd_init) || counts_nodes) return Severity::error;
  if (is_said_to_be_one_node(program)) return Severity::info;
  if (facts::expects_nodes(program)) return Severity::error;
  if (tells_ranks_apart(program, where))
    return leaves_nodes_open(program) ? Severity::error : Severity::warning;
  const bool is_one_as_launched = starts_processes_here(program) || !program.launches().empty();
  return is_one_as_launched ? Severity::info : Severity::warning;
}

// {"cuda:0": f"cuda:{rank}"}, or the device itself.
Ref global_rank_in_map(const Program& program, Ref map) {
  if (map && map.kind() == Kind::identifier)
    if (const auto& sources = program.sources(map);
        sources.size() == 1 && sources.front().ref.kind() == Kind::dictionary)
      map = sources.front().ref;
  if (!map || map.kind() != Kind::dictionary) return global_rank_in(program, map);
  const auto& tree = map.module->tree();
  for (auto at = tree[map.node].first_child; at != diagnose::kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::pair)
      if (const Ref found = global_rank_in(program, map.with(tree.child(at, Field::value))))
        return found;
  return {};
}

}  // namespace

void check_wrong_rank_as_device_index(const Program& program, Report& report) {
  // horovodrun starts the ranks of several hosts as readily as those of one.
  const bool by_horovod = program.uses(Api::hvd_init);
  if (!by_horovod && !facts::is_distributed(program) && !has_trainer_ranks(program)) return;
  const auto flag = [&](Ref where) {
    if (!where) return false;
    Finding& finding = report.at(where, Confidence::likely,
                                 "the global rank is used as a device index: on the second node "
                                 "there is no such GPU (invalid device ordinal)");
    finding.severity = severity_of(program, where);
    finding.help = by_horovod ? "Use hvd.local_rank()."
                              : "Use the local rank: int(os.environ[\"LOCAL_RANK\"]), or rank % "
                                "torch.cuda.device_count().";
    return true;
  };
  for (const CallRef& call : program.calls(Api::set_device))
    if (flag(global_rank_in(program, call.argument(0, "device")))) return;
  for (const Wrap& wrap : program.wraps()) {
    Ref ids = wrap.call.argument(1, "device_ids");
    // [rank] if torch.cuda.is_available() else None
    if (ids && ids.kind() == Kind::conditional)
      ids = ids.with(ids.module->tree().child_at(ids.node, 0));
    ids = program.written(ids);
    if (wrap.kind != Wrapper::ddp || ids.kind() != Kind::list ||
        ids.module->tree().child_count(ids.node) != 1)
      continue;
    const Ref index = ids.with(ids.module->tree().child_at(ids.node, 0));
    if (flag(global_rank_in(program, index))) return;
    for (const CallRef& placed : facts::placements(program, wrap))
      if (flag(global_rank_in(program, placed.positional(0)))) return;
  }
  // from_pretrained(name, device_map={"": rank})
  for (const CallRef& load : program.calls_named("from_pretrained"))
    if (const Ref map = load.keyword("device_map"))
      for (const diagnose::Source& source : program.sources(map))
        if (source.ref.kind() == Kind::dictionary && flag(global_rank_in_map(program, source.ref)))
          return;
  // device = torch.device(f"cuda:{rank}")
  for (const CallRef& device : program.calls(Api::torch_device)) {
    const Ref rank = global_rank_in(program, device.ref());
    if (rank && !is_never_read(program, device.ref()) && flag(rank)) return;
  }
  // images.to(f"cuda:{rank}") of the batches.
  for (const std::string_view method : {"to", "cuda"})
    for (const CallRef& move : program.calls_named(method))
      if (const Ref rank = move.receiver() && facts::is_reachable(program, move.ref())
                               ? global_rank_in(program, move.argument(0, "device"))
                               : Ref{};
          flag(rank))
        return;
  for (const CallRef& load : program.calls(Api::torch_load))
    if (program.guarded_by_rank(load.ref()) == diagnose::RankTest::none &&
        !facts::only_without_distribution(program, load.ref()) &&
        flag(global_rank_in_map(program, load.argument(1, "map_location"))))
      return;
}

}  // namespace bench::pitfalls
