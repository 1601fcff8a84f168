#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/files/directories.hpp"
#include "scenarios/pitfalls/files/fetches.hpp"
#include "scenarios/pitfalls/files/own_disks.hpp"
#include "scenarios/pitfalls/files/shared_removals.hpp"
#include "scenarios/pitfalls/files/unwaited_reads.hpp"
#include "scenarios/pitfalls/files/writer_of_logs.hpp"
#include "scenarios/pitfalls/files/written_caches.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/paths.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/own_ranks.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::RankTest;

namespace {

bool is_of_torchvision(Ref cls) {
  const std::string name = cls.module->qualified(cls.node);
  return name.starts_with("torchvision.datasets.") || name.starts_with("torchaudio.datasets.");
}

// class Photos(Dataset): def __init__(self, root, download=False): if download: self.download():
// nothing in it asks which process it is in.
bool downloads_by_itself(diagnose::ClassRef cls) {
  const std::string text = facts::lowered(cls.module->text(cls.cls->body));
  for (const char* word : {"rank", "is_main", "lock", "barrier", "main_process", "is_master"})
    if (facts::contains(text, word)) return false;
  return facts::contains(text, "download");
}

// create_dataset(name, download=True) of timm and get_dataset() of WILDS; a project's own function
// may well look after its ranks.
bool is_maker_of_library(const CallRef& call) {
  const std::string_view path = call.call->path;
  for (const char* library :
       {"timm.", "wilds.", "torchtext.", "torchaudio.", "ogb.", "medmnist.", "encoding."})
    if (path.starts_with(library)) return says_any(call.call->name, {"dataset"});
  return false;
}

// datasets.CIFAR10(...), a class that derives from it, and source(...) after source =
// datasets.CIFAR10; of classes whose file is not there those that are called as its data sets are:
// with the wish to download.
bool is_dataset(const Program& program, const CallRef& call) {
  const Ref callee{call.module, call.call->function};
  if (is_of_torchvision(callee)) return true;
  if (const diagnose::ClassRef cls = program.class_of_call(call)) {
    const auto& bases = cls.cls->bases;
    return downloads_by_itself(cls) ||
           std::any_of(bases.begin(), bases.end(), [&](diagnose::NodeId base) {
             return is_of_torchvision({cls.module, base});
           });
  }
  const auto& sources = program.sources(callee);
  if (std::any_of(sources.begin(), sources.end(),
                  [](const diagnose::Source& source) { return is_of_torchvision(source.ref); }))
    return true;
  const CallRef chosen = program.as_call(callee);  // getattr(torchvision.datasets, name)(...)
  if (chosen && chosen.call->name == "getattr" && chosen.positional(0))
    return facts::contains(chosen.module->qualified(chosen.positional(0).node), "datasets");
  const std::string_view name = call.call->name;
  return !program.callee(call) && !name.empty() &&
         (std::isupper(static_cast<unsigned char>(name.front())) != 0 || is_maker_of_library(call));
}

// The first rank has fetched the same data set before, so that the others find it.
bool first_rank_downloads(const Program& program, const CallRef& load) {
  const auto same = program.calls_named(load.call->name);
  return std::any_of(same.begin(), same.end(), [&](const CallRef& other) {
    return other.call != load.call && program.is_literal_true(other.keyword("download")) &&
           !program.runs_before(load.ref(), other.ref()) &&
           (program.guarded_by_rank(other.ref()) != RankTest::none ||
            program.before_ranks(other.ref()));
  });
}

// The training and the test data are of one archive.
bool is_in_one_archive(std::string_view name) {
  for (const char* each : {"MNIST", "FashionMNIST", "KMNIST", "EMNIST", "CIFAR10", "CIFAR100",
                           "STL10", "Food101", "DTD", "Flowers102", "OxfordIIITPet"})
    if (name == each) return true;
  return false;
}

// CIFAR10(...), and Data(...) after Data = CIFAR10 or CIFAR10 if small else CIFAR100.
bool has_one_archive(const Program& program, const CallRef& load) {
  if (is_in_one_archive(load.call->name)) return true;
  const auto& sources = program.sources(load.ref().with(load.call->function));
  const auto is_none = [](const diagnose::Source& source) {
    return source.ref.kind() == Kind::none_literal;
  };
  return !std::all_of(sources.begin(), sources.end(), is_none) &&
         std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           const std::string_view text = source.ref.text();
           return is_none(source) || is_in_one_archive(text.substr(text.rfind('.') + 1));
         });
}

// In a function, and the other one at the file's own level.
bool is_deeper(const Program& program, Ref node, Ref other) {
  return program.enclosing_function(node) && !program.enclosing_function(other);
}

// An evaluation in each epoch, and CIFAR10(root, train=True, download=True) above the loop, or in a
// function, and above it on the file's own level: this process has the files by then, and the race
// is told there.
bool is_fetched_above(const Program& program, const CallRef& load) {
  if (!has_one_archive(program, load)) return false;
  const bool in_loop = !program.loops_around(load.ref()).empty();
  const auto same = program.calls_named(load.call->name);
  return std::any_of(same.begin(), same.end(), [&](const CallRef& other) {
    return other.call != load.call &&
           other.argument(0, "root").text() == load.argument(0, "root").text() &&
           program.is_literal_true(other.keyword("download")) &&
           (runs_wherever(program, other.ref(), load.ref()) ||
            (is_unconditional(program, other.ref()) &&
             (in_loop || is_deeper(program, load.ref(), other.ref())))) &&
           program.loops_around(other.ref()).empty() &&
           only_runs_before(program, other.ref(), load.ref());
  });
}

// `if rank != 0: barrier()` above: the other ranks wait until the first has done its work alone.
bool others_wait(const Program& program, Ref node) {
  const auto function = program.enclosing_function(node);
  const bool called_unseen = function && program.call_sites(function).empty();
  const auto barriers = program.calls(Api::barrier);
  return std::any_of(barriers.begin(), barriers.end(), [&](const CallRef& barrier) {
    return program.guarded_by_rank(barrier.ref()) == RankTest::not_main &&
           (called_unseen || program.runs_before(barrier.ref(), node));
  });
}

// Code of an imported file that every process runs with its imports: the one that calls mp.spawn
// has made the directory when the ranks ask for it.
bool is_made_by_parent(const Program& program, const CallRef& make) {
  const auto& launches = program.launches();
  return make.module != &program.root() && !program.enclosing_function(make.ref()) &&
         program.uses(Api::spawn) && asks_whether_it_is_there(program, make.ref()) &&
         std::all_of(launches.begin(), launches.end(), [](const diagnose::LaunchLine& launch) {
           return launch.launcher == diagnose::Launcher::python;
         });
}

// input("Download? [y]/n "), click.confirm("Download?")
bool is_question(const CallRef& call) {
  return call && ((call.call->name == "input" && !call.receiver()) || call.call->name == "confirm");
}

// answer = input("Download? [y]/n "), and the files are fetched where somebody has said yes. No
// rank waits at a keyboard: mp.spawn and torchrun give it none, or the same one to all.
bool is_left_to_a_person(const Program& program, Ref node) {
  return program.under(node, [&](Ref condition, bool) {
    const auto& tree = condition.module->tree();
    for (auto at = condition.node; at < tree[condition.node].last; ++at) {
      const Ref part = condition.with(at);
      if (is_question(program.as_call(part))) return true;
      if (part.kind() != Kind::identifier) continue;
      const auto sources = program.sources(part);
      if (std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
            return is_question(program.as_call(source.ref));
          }))
        return true;
    }
    return false;
  });
}

// Neither a test of the rank nor a lock, a barrier or the time before there are ranks keeps the
// others from doing the same at once.
bool all_ranks_do_at_once(const Program& program, Ref node) {
  return program.guarded_by_rank(node) == RankTest::none && !facts::under_lock(program, node) &&
         !facts::rank_goes_first(program, node) && !facts::only_before_ranks(program, node) &&
         facts::is_reachable(program, node) && !others_wait(program, node) &&
         !is_left_to_a_person(program, node) && !is_left_to_the_writer(program, node) &&
         !facts::only_without_distribution(program, node);
}

// download=True, or that of a caller: make_data(root, download=True) for download=download.
Ref wish_to_download(const Program& program, const CallRef& load) {
  const Ref download = load.keyword("download");
  if (!download || program.written(download).kind() == Kind::true_literal) return download;
  if (!facts::is_parameter(program, download)) return {};
  const auto maker = program.enclosing_function(load.ref());
  for (const CallRef& site : program.call_sites(maker)) {
    const Ref given = facts::argument_for(site, maker, download.text());
    if (given && given.kind() == Kind::true_literal && all_ranks_do_at_once(program, site.ref()))
      return given;
  }
  return {};
}

void find_downloads(const Program& program, Report& report) {
  if (is_process_a_node(program)) return;
  for (const diagnose::Module* module : program.modules())
    for (const auto& each : module->calls()) {
      const CallRef load{module, &each};
      const Ref download = wish_to_download(program, load);
      if (!download || !is_dataset(program, load)) continue;
      if (program.comes_from_rank(load.argument(0, "root")) ||
          first_rank_downloads(program, load) || is_fetched_above(program, load) ||
          !all_ranks_do_at_once(program, load.ref()))
        continue;
      report
          .at(download, Confidence::likely,
              "every rank downloads and unpacks the same files: ranks may read half of one")
          .help = "Download on rank 0, call dist.barrier(), then read on every rank.";
    }
}

// CIFAR10(root, download=rank == 0): the first rank downloads while the others, in the same call,
// look for the files and raise.
void find_downloads_of_one_rank(const Program& program, Report& report) {
  if (is_process_a_node(program)) return;
  for (const diagnose::Module* module : program.modules())
    for (const auto& each : module->calls()) {
      const CallRef load{module, &each};
      const Ref download = load.keyword("download");
      if (!download || program.rank_test(download) != RankTest::main_only ||
          !is_dataset(program, load) || program.guarded_by_rank(load.ref()) != RankTest::none ||
          first_rank_downloads(program, load) || is_fetched_above(program, load) ||
          facts::rank_goes_first(program, load.ref()) || others_wait(program, load.ref()))
        continue;
      report
          .at(download, Confidence::likely,
              "one rank downloads here, and the others look for the files at the same time: they "
              "do not find them, or find half of them")
          .help =
          "Download on rank 0 first, call dist.barrier(), then make the data set with "
          "download=False on every rank.";
    }
}

void find_loads_without_barrier(const Program& program, Report& report) {
  for (const auto& [place, read] : unwaited_reads(program))
    report
        .at(place.ref(), Confidence::likely,
            read.call->api == Api::torch_load
                ? "the file that rank 0 saves is loaded by all ranks without a barrier: they may "
                  "read half of it"
                : "what rank 0 writes is read by all ranks without a barrier: they may find none "
                  "of it, or half of it")
        .help = "Call dist.barrier() (accelerator.wait_for_everyone()) between the two.";
}

// if download: self.fetch() of a data set, which is told where it is made. An option that is off
// unless a run asks for it, `if args.prepare:`, may be a run of its own.
bool is_asked_for(const Program& program, Ref node) {
  return program.under(node, [&](Ref condition, bool holds) {
    return holds && (facts::contains(condition.text(), "download") ||
                     program.evaluate(condition).is_false());
  });
}

// for url in urls[rank::world]: fetch(url), and the file of one sample, which only the rank that
// draws it asks for: each file is fetched by one rank.
bool is_dealt_out(const Program& program, Ref node) {
  const auto places = diagnose::places_of(program, node);
  return std::any_of(places.begin(), places.end(), [&](Ref place) {
    const auto function = program.enclosing_function(place);
    if (function && function.function->name == "__getitem__") return true;
    const auto loops = program.loops_around(place);
    return std::any_of(loops.begin(), loops.end(), [](Ref loop) {
      const Ref over = loop.child(Field::right);
      const auto speaks_of_rank = [](Ref part) { return facts::contains(part.text(), "rank"); };
      return loop.kind() == Kind::for_statement &&
             ((over && speaks_of_rank(over)) ||
              (speaks_of_rank(loop) && holds_any(loop.text(), {" % ", "continue"})));
    });
  });
}

// urlretrieve(url, path), also where the ranks ask first whether the file is there: all of them
// find that it is not.
void find_fetches(const Program& program, Report& report) {
  if (is_process_a_node(program)) return;
  for (const auto& [call, path, is_moved] : fetches_of(program)) {
    const Ref node = call.ref();
    if (is_asked_for(program, node) || (path && program.comes_from_rank(path)) ||
        (path && is_drawn_by_each(program, path)) || is_made_by_parent(program, call) ||
        is_dealt_out(program, node) || !all_ranks_do_at_once(program, node))
      continue;
    Finding& finding = report.at(
        node, Confidence::likely,
        is_moved ? "every rank fetches the same file: a copy of its own, which it moves to the one "
                   "place"
                 : "every rank fetches or unpacks the same files: ranks write over each other, and "
                   "may read half of one");
    if (is_moved) tell_as_note(finding);
    finding.help = "Fetch it on rank 0, let the others wait at a barrier, then read on every rank.";
  }
}

// on_train_start() of a Lightning module or callback, which every process of the Trainer runs.
bool is_in_hook(const Program& program, Ref node) {
  const auto method = program.enclosing_function(node);
  const auto cls = program.enclosing_class(node);
  if (!method || !cls ||
      !(method.function->name.starts_with("on_") || method.function->name == "setup" ||
        method.function->name.ends_with("_step")))
    return false;
  return program.derives_from(cls, Api::lightning_module) ||
         program.derives_from(cls, Api::lightning_data_module) ||
         std::any_of(cls.cls->bases.begin(), cls.cls->bases.end(), [&](diagnose::NodeId base) {
           return facts::contains(cls.module->text(base), "Callback");
         });
}

// num_nodes=int(os.environ["SLURM_NNODES"]), and no setting by such a name: cfg.NUM_NODES.
bool asks_the_cluster(const Program& program, Ref nodes) {
  const auto& sources = program.sources(nodes);
  return std::any_of(sources.begin(), sources.end(), [](const diagnose::Source& source) {
    const std::string_view text = source.ref.text();
    return facts::contains(text, "NODES") &&
           (facts::contains(text, "environ") || facts::contains(text, "getenv"));
  });
}

// Trainer(num_nodes=2): the first process of each node runs the script from its first line; those
// beside it are started where the Trainer is reached.
bool is_started_on_several_nodes(const Program& program) {
  const auto uses = trainer::uses(program);
  return std::any_of(uses.begin(), uses.end(), [&](const trainer::Use& use) {
    const trainer::Argument* nodes = use.find("num_nodes");
    return nodes != nullptr && ((nodes->value.is_integer() && nodes->value.integer > 1) ||
                                (nodes->node && asks_the_cluster(program, nodes->node)));
  });
}

// data.save_to_disk(path): a cache of samples that all ranks make at once, also where each asks
// first whether it is there.
void find_caches(const Program& program, Report& report) {
  if (is_process_a_node(program)) return;
  for (const CallRef& save : program.calls_named("save_to_disk")) {
    const Ref node = save.ref();
    const Ref path = save.positional(0);
    if (!path || !save.receiver() || program.comes_from_rank(path) ||
        is_drawn_by_each(program, path) || !all_ranks_do_at_once(program, node) ||
        facts::only_in_a_side_mode(program, node))
      continue;
    report
        .at(node, Confidence::likely,
            "every rank writes the same data set: ranks write it over each other, and may read "
            "half of it")
        .help = "Write it on the first rank, let the others wait, then read on every rank.";
  }
}

// By a function that works on one sample or batch, or a call in a loop: each rank may have files of
// its own. By a call that one rank makes, or the parent of the ranks: the others may wait for it,
// unless a call that all of them make comes first.
bool may_be_written_by_one(const Program& program, Ref place, int depth = 0) {
  constexpr int kCallers = 4;
  constexpr std::string_view kOfSamples[] = {"__getitem__", "__iter__", "__call__", "forward"};
  const auto function = program.enclosing_function(place);
  const std::string_view name = function ? function.function->name : std::string_view{};
  if (program.innermost_loop(place) || facts::only_before_ranks(program, place) ||
      place.module->tree().ancestor(place.node, Kind::comprehension) != kNoNode ||
      program.guarded_by_rank(place) != RankTest::none || says_any(name, {"collate"}) ||
      std::find(std::begin(kOfSamples), std::end(kOfSamples), name) != std::end(kOfSamples))
    return true;
  if (!function || depth == kCallers) return false;
  const auto& sites = program.call_sites(function);
  std::vector<Ref> by_one;
  std::vector<Ref> by_all;
  for (const CallRef& site : sites)
    (may_be_written_by_one(program, site.ref(), depth + 1) ? by_one : by_all).push_back(site.ref());
  return std::any_of(by_one.begin(), by_one.end(), [&](Ref one) {
    return std::none_of(by_all.begin(), by_all.end(),
                        [&](Ref all) { return only_runs_before(program, all, one); });
  });
}

// if os.path.exists(path): index = pickle.load(...), else: pickle.dump(build(), ...): a rank that
// comes while another one still writes finds the file there.
void find_written_caches(const Program& program, Report& report) {
  if (is_process_a_node(program)) return;
  for (const auto& [write, path] : written_caches(program)) {
    const Ref node = write.ref();
    if (program.comes_from_rank(path) || is_drawn_by_each(program, path) ||
        facts::contains(facts::lowered(path.text()), "rank") ||
        facts::contains(facts::lowered(path.text()), "tmp") || is_dealt_out(program, node) ||
        facts::contains(path.text(), "current_device") || program.mentions("chdir") ||
        may_be_written_by_one(program, node) || is_made_under_a_lock(program, write) ||
        !all_ranks_do_at_once(program, node) || facts::only_in_a_side_mode(program, node))
      continue;
    report
        .at(node, Confidence::likely,
            "every rank writes the file, and reads it where it is there: ranks write over each "
            "other, and one that comes a little later reads half of it")
        .help = "Write it on the first rank, let the others wait, then read on every rank.";
  }
}

// exist_ok=True, also in the place of exists_ok=True, which no version knows.
void allow_existing(const CallRef& make, Finding& finding) {
  constexpr const char* kTitle = "Allow an existing directory";
  for (const diagnose::Argument& given : make.module->arguments(make.call->node)) {
    std::string name = facts::lowered(given.name);
    std::erase(name, '_');
    if (name != "existsok" && name != "existok" && name != "existedok") continue;
    const std::uint32_t begin = make.module->tree()[given.node].begin;
    const auto length = static_cast<std::uint32_t>(given.name.size());
    if (make.ref().with(given.value).kind() == Kind::true_literal &&
        make.ref().with(given.node).text().starts_with(given.name))
      replace_bytes(make.ref(), begin, begin + length, "exist_ok", kTitle, finding);
    return;
  }
  add_argument(make, "exist_ok=True", kTitle, finding);
}

template <typename Accepts>
void find_directories(const Program& program, const Accepts& accepts, Report& report) {
  for (const std::string_view name : {"mkdir", "makedirs", "copytree"})
    for (const CallRef& make : program.calls_named(name)) {
      const Ref directory = directory_made(program, make);
      if (!directory || !accepts(program, make.ref())) continue;
      const bool copies = name == "copytree";
      const Ref exist_ok = copies ? make.keyword("dirs_exist_ok") : make.argument(2, "exist_ok");
      if ((exist_ok && !program.is_literal_false(exist_ok)) ||
          program.guarded_by_rank(make.ref()) != RankTest::none)
        continue;
      if (is_attempted(program, make)) continue;
      if (facts::rank_goes_first(program, make.ref()) ||
          facts::only_before_ranks(program, make.ref()) ||
          facts::only_without_distribution(program, make.ref()) || is_made_above(program, make) ||
          holds_a_file_loaded_below(program, make) || is_made_by_parent(program, make) ||
          is_behind_a_race(program, make) || is_made_under_a_lock(program, make) ||
          is_left_to_a_person(program, make.ref()))
        continue;
      if (!facts::is_reachable(program, make.ref()) || program.comes_from_rank(directory) ||
          is_drawn_by_each(program, directory))
        continue;
      const bool side_mode = facts::only_in_a_side_mode(program, make.ref());
      Finding& finding =
          report.at(make.ref(), side_mode ? Confidence::check : Confidence::likely,
                    "every rank makes the directory: the second one raises FileExistsError");
      if (side_mode) finding.severity = Severity::info;
      finding.help = copies ? "Pass dirs_exist_ok=True, or better copy on rank 0 alone."
                            : "Pass exist_ok=True (os.makedirs, Path.mkdir), or make it on rank 0.";
      if ((name == "makedirs" || directory == make.receiver()) && !exist_ok)
        allow_existing(make, finding);
      if (may_be_makedirs(program, make)) {
        allow_existing(make, finding);
        replace(make.ref().with(make.call->function), "os.makedirs", "", finding);
      }
    }
}

}  // namespace

void check_checkpoint_io_unguarded(const Program& program, Report& report) {
  const bool own = has_ranks_of_its_own(program);
  if (own || program.uses(Api::accelerator) || has_trainer_ranks(program))
    find_loads_without_barrier(program, report);
  if (own || accelerate_wraps(program)) check_shared_removals(program, report);
  // Accelerate leaves files to the script, which every process runs from its first line.
  if (!own && has_lightning_ranks(program))
    find_directories(
        program,
        [](const Program& each, Ref node) {
          return is_in_hook(each, node) || is_started_on_several_nodes(each);
        },
        report);
  if (!own && !accelerate_wraps(program) && !has_trainer_ranks(program)) return;
  find_downloads(program, report);
  find_downloads_of_one_rank(program, report);
  find_fetches(program, report);
  find_caches(program, report);
  find_written_caches(program, report);
  find_directories(
      program, [](const Program&, Ref) { return true; }, report);
}

}  // namespace bench::pitfalls
