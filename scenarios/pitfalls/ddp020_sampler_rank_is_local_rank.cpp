#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/env_rendezvous.hpp"
#include "scenarios/pitfalls/ranks/nodes_of_job.hpp"

#include <algorithm>
#include <map>

namespace bench::pitfalls {

using diagnose::Api;

namespace {

// The script knows the rank of the job as well: os.environ["RANK"].
bool reads_rank(const Program& program) {
  return program.mentions("\"RANK\"") || program.mentions("'RANK'");
}

// ranks[node][gpu]: a table that counts over all nodes.
bool is_of_table(const Program& program, Ref rank) {
  const auto& sources = program.sources(rank);
  return std::any_of(sources.begin(), sources.end(), [](const diagnose::Source& source) {
    return source.ref.kind() == diagnose::Kind::subscript &&
           source.ref.child(diagnose::Field::value).kind() == diagnose::Kind::subscript;
  });
}

// mesh["dp"].get_local_rank(): where a process stands in one dimension of a DeviceMesh, which may
// span nodes. LOCAL_RANK is another thing.
bool is_of_mesh(const Program& program, Ref rank) {
  const auto& sources = program.sources(rank);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    const CallRef call = program.as_call(source.ref);
    if (!call || call.call->name != "get_local_rank" || !call.receiver()) return false;
    if (facts::contains(call.receiver().text(), "mesh")) return true;
    const auto& objects = program.sources(call.receiver());
    return std::any_of(objects.begin(), objects.end(), [](const diagnose::Source& object) {
      return facts::contains(facts::lowered(object.ref.text()), "mesh");
    });
  });
}

// if args.local_rank != -1: args.rank = args.local_rank; elif Slurm: args.rank = ...: in one branch
// of several the rank is the local one.
bool is_local_in_a_branch(const Program& program, Ref rank) {
  const bool attribute = rank.kind() == diagnose::Kind::attribute;
  if (!attribute && rank.kind() != diagnose::Kind::identifier) return false;
  const auto inside = program.enclosing_function(rank);
  const auto& module = *rank.module;
  for (const std::uint32_t index : module.defs_of(diagnose::last_word(rank), attribute)) {
    const auto& def = module.defs()[index];
    const Ref value{&module, def.value};
    if (def.kind == diagnose::DefKind::assign && value && def.element < 0 &&
        program.enclosing_function(value) == inside && program.is_local_rank(value) &&
        !program.is_rank(value) && !program.is_spawn_rank(value) &&
        value.kind() != diagnose::Kind::binary)
      return true;
  }
  return false;
}

// The processes started here are all of the job, as if each node had its part of them:
// mp.spawn(worker, nprocs=gpus * nodes), for rank in range(gpus * nodes): Process(...).
bool starts_whole_job(const Program& program) {
  for (const CallRef& spawn : program.calls(Api::spawn))
    if (facts::counts_nodes(program, spawn.argument(2, "nprocs"))) return true;
  for (const CallRef& process : program.calls_named("Process")) {
    const Ref loop = program.innermost_loop(process.ref());
    const CallRef range = loop ? program.as_call(loop.child(diagnose::Field::right)) : CallRef{};
    if (range && facts::counts_nodes(program, range.positional(0))) return true;
  }
  return false;
}

// init_process_group(rank=gpu, world_size=gpus * nodes), whatever address the ranks meet at.
bool tells_world_of_all_nodes(const Program& program, Report& report) {
  if (facts::launches_tell_nodes(program) || facts::computes_global_rank(program)) return false;
  for (const CallRef& init : program.calls(Api::init_process_group)) {
    const Ref rank = init.keyword("rank");
    if (!rank || is_fake_group(program, init) || !program.is_local_rank(rank) ||
        is_of_table(program, rank) ||
        (program.is_rank(rank) && !program.is_spawn_rank(rank)) ||
        !facts::counts_nodes(program, init.keyword("world_size")) || starts_whole_job(program))
      continue;
    in_no_trial(
        report.at(
            rank, Confidence::likely,
            "the world size counts all nodes, and the rank the processes of one: with two nodes "
            "both have a rank 0, and the rendezvous waits for the others"))
        .help = "Pass node_rank * gpus + the index on the node.";
    return true;
  }
  return false;
}

// rank * (len(data) // torch.cuda.device_count()) with the rank of the job: as many shares as this
// node has GPUs, and ranks of all nodes.
bool is_share_of_node(const Program& program, Ref product) {
  const auto& tree = product.module->tree();
  if (product.kind() != diagnose::Kind::binary || tree[product.node].op != diagnose::Op::multiply)
    return false;
  Ref rank = product.child(diagnose::Field::left);
  Ref share = product.child(diagnose::Field::right);
  if (!program.is_rank(rank)) std::swap(rank, share);
  if (!program.is_rank(rank) || program.is_local_rank(rank) || program.is_spawn_rank(rank))
    return false;
  for (const diagnose::Source& source : program.sources(share)) {
    const Ref value = source.ref;
    const Ref parts = value.kind() == diagnose::Kind::binary &&
                              value.module->tree()[value.node].op == diagnose::Op::floor_divide
                          ? value.child(diagnose::Field::right)
                          : Ref{};
    // of the CPU's cores it may be a place on this machine
    if (parts && facts::contains(value.child(diagnose::Field::left).text(), "len(") &&
        program.comes_from(parts, Api::device_count) && !program.is_world_size(parts))
      return true;
  }
  return false;
}

// len(data) // gpus, without which there is no such share: no product is asked for its parts.
bool cuts_a_length(const Program& program) {
  if (!program.uses(Api::device_count)) return false;
  const auto& modules = program.modules();
  return std::any_of(modules.begin(), modules.end(), [](const diagnose::Module* module) {
    const auto& found = module->nodes_of(diagnose::Kind::binary);
    return std::any_of(found.begin(), found.end(), [&](const diagnose::NodeId id) {
      const Ref at{module, id};
      return module->tree()[id].op == diagnose::Op::floor_divide &&
             facts::contains(at.child(diagnose::Field::left).text(), "len(");
    });
  });
}

Ref share_of_node(const Program& program) {
  if (!cuts_a_length(program)) return {};
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::NodeId id : module->nodes_of(diagnose::Kind::binary)) {
      const Ref product{module, id};
      if (is_share_of_node(program, product) && facts::is_reachable(program, product))
        return product;
    }
  return {};
}

// What takes the rank modulo the GPUs of a node is made for several nodes.
bool is_made_for_nodes(const Program& program) {
  return facts::is_distributed(program) && !facts::is_single_node(program) &&
         (program.mentions("% torch.cuda.device_count()") || program.mentions("% device_count()") ||
          facts::computes_global_rank(program));
}

void check_shares_by_hand(const Program& program, Report& report) {
  const Ref product = is_made_for_nodes(program) ? share_of_node(program) : Ref{};
  if (!product) return;
  in_no_trial(
      report.at(
          product, Confidence::likely,
          "the shares are as many as this node has GPUs, and the rank counts over all nodes: on a "
          "second node it points past the end of the data"))
      .help = "Divide by dist.get_world_size().";
}

}  // namespace

void check_sampler_rank_is_local_rank(const Program& program, Report& report) {
  check_shares_by_hand(program, report);
  if (tells_world_of_all_nodes(program, report) || facts::is_single_node(program)) return;
  // The index that mp.spawn hands out is a rank of the job on one node only.
  const bool spans = facts::computes_global_rank(program);
  const auto is_local = [&](Ref rank) {
    return rank && program.is_local_rank(rank) && !is_of_table(program, rank) &&
           !is_of_mesh(program, rank) &&
           (!program.is_rank(rank) || (spans && program.is_spawn_rank(rank)));
  };
  // On one node the local rank is the rank, and nothing may ever have run on a second one.
  const bool nodes =
      spans || facts::expects_nodes(program) || program.uses(Api::hvd_rank) || reads_rank(program);
  const auto flag = [&](Ref where, std::string message, std::string help) -> Finding& {
    Finding& finding = in_no_trial(report.at(where, Confidence::likely, std::move(message)));
    finding.help = std::move(help);
    if (!nodes) tell_as_note(finding);
    return finding;
  };
  for (const CallRef& sampler : program.calls(Api::distributed_sampler)) {
    const Ref rank = sampler.argument(2, "rank");
    const Ref replicas = sampler.argument(1, "num_replicas");
    const bool counts_node = replicas && program.comes_from(replicas, Api::device_count) &&
                             !program.is_world_size(replicas);
    // The trial makes both mistakes: with the rank's alone half of the data is left out instead.
    const std::string_view trial = is_local(rank) && counts_node ? "" : diagnose::kNoTrial;
    if (is_local(rank))
      as_in_trial(
          flag(rank, "the sampler is given the local rank: every node reads the same shards",
               "Leave num_replicas and rank out, or pass dist.get_rank()."),
          trial);
    if (counts_node)
      as_in_trial(flag(replicas,
                       "num_replicas is the number of GPUs of this node: with several nodes data "
                       "is read more than once",
                       "Leave num_replicas and rank out, or pass dist.get_world_size()."),
                  trial);
  }
  for (const CallRef& init : program.calls(Api::init_process_group))
    if (const Ref rank = init.keyword("rank");
        !is_fake_group(program, init) &&
        (is_local(rank) || (rank && nodes && !spans && is_local_in_a_branch(program, rank))))
      flag(rank,
           "init_process_group is given the local rank: two nodes both have a rank 0, "
           "and the rendezvous hangs",
           "Pass the global rank (RANK), or leave rank out under torchrun.");
}

namespace {

// The number of shards that the sampler was told, where the job has more processes; else 0.
double too_few_shards(const RunEvidence& run) {
  const double replicas = run.number("sampler_replicas");
  return replicas < static_cast<double>(run.ranks().size()) ? replicas : 0;
}

// Samples that more than one rank reads, of all.
double samples_read_twice(const RunEvidence& run) {
  std::map<std::int64_t, int> readers;
  for (const Json& indices : run.of_every_rank("indices"))
    for (const Json& index : indices) ++readers[index.get<std::int64_t>()];
  return static_cast<double>(std::count_if(readers.begin(), readers.end(),
                                           [](const auto& each) { return each.second > 1; }));
}

}  // namespace

void judge_sampler_rank_is_local_rank(const RunEvidence& run, RunReport& report) {
  const double shards = too_few_shards(run);
  if (shards == 0) return;
  Finding& finding =
      report.add(Confidence::certain, "the sampler cuts the data into " + figure(shards) +
                                          " shards for " + std::to_string(run.ranks().size()) +
                                          " processes, which read as ranks " +
                                          rank_figures(run, "sampler_rank"));
  finding.help = "Leave num_replicas and rank out, or take them from the process group.";
  finding.evidence.emplace_back("rank given to the sampler", rank_figures(run, "sampler_rank"));
}

Price price_sampler_rank_is_local_rank(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const double size = broken.number("dataset_size");
  price.reproduced = samples_read_twice(broken) > 0;
  price.gone = cured.first("indices") != nullptr && samples_read_twice(cured) == 0;
  price.cost = 100 * samples_read_twice(broken) / size;
  price.unit = "% of the samples read by more than one rank";
  price.seen = "silent: the ranks read shards " + rank_figures(broken, "sampler_rank");
  return price;
}

}  // namespace bench::pitfalls
