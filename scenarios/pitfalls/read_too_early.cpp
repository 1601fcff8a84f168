#include "scenarios/pitfalls/read_too_early.hpp"

#include "scenarios/pitfalls/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::RankTest;

namespace {

// A function that writes a file or a directory, the one that reads it back, and where each is given
// the path.
struct Pair {
  std::string_view writes;
  std::size_t written_at;
  std::string_view reads;
};

constexpr Pair kPairs[] = {
    {"save", 1, "torch.load"},
    {"save_to_disk", 0, "load_from_disk"},
    {"save", 0, "numpy.load"},
    {"dump", 1, "joblib.load"},
    {"to_csv", 0, "pandas.read_csv"},
    {"to_parquet", 0, "pandas.read_parquet"},
    {"to_pickle", 0, "pandas.read_pickle"},
    {"open", 0, "open"},
};

// torch.load is asked for by its whole name, load_from_disk as a function or a method of datasets.
bool is_call_of(const CallRef& call, std::string_view name) {
  const std::string path = call.module->qualified(call.call->function);
  return name.find('.') == std::string_view::npos ? call.call->name == name : path == name;
}

// open(path, "wb")
bool opens_for(const Program& program, const CallRef& open, std::string_view mode) {
  const std::string given = program.string(open.argument(1, "mode")).value_or("r");
  return !open.receiver() && given.starts_with(mode);
}

// torch.save for torch.load, numpy.save for numpy.load; a method of the data where the name says
// enough.
bool is_writer_for(const Program& program, const CallRef& save, const Pair& pair) {
  if (pair.writes == "open") return opens_for(program, save, "w");
  const std::string path = save.module->qualified(save.call->function);
  const std::string package(pair.reads.substr(0, pair.reads.find('.') + 1));
  if (pair.writes == "save" || pair.writes == "dump")
    return path == package + std::string(pair.writes);
  return save.receiver() && path.empty();
}

Ref path_of(const CallRef& call, std::size_t index) {
  for (const char* name : {"f", "file", "path", "dataset_path", "filename"})
    if (const Ref given = call.keyword(name)) return given;
  return call.positional(index);
}

bool waits_between(const Program& program, Ref save, Ref load) {
  for (const std::string_view name :
       {"barrier", "monitored_barrier", "wait_for_everyone", "synchronize"}) {
    const auto calls = program.calls_named(name);
    if (std::any_of(calls.begin(), calls.end(), [&](const CallRef& wait) {
          return program.runs_before(save, wait.ref()) && program.runs_before(wait.ref(), load);
        }))
      return true;
  }
  return false;
}

bool is_read_too_early(const Program& program, const CallRef& load, const Pair& pair) {
  const Ref path = path_of(load, 0);
  const auto saves = program.calls_named(pair.writes);
  return path && std::any_of(saves.begin(), saves.end(), [&](const CallRef& save) {
           if (save.call == load.call) return false;
           const Ref saved = path_of(save, pair.written_at);
           return saved && saved.text() == path.text() && save.module == load.module &&
                  is_writer_for(program, save, pair) &&
                  program.guarded_by_rank(save.ref()) == RankTest::main_only &&
                  program.enclosing_function(save.ref()) ==
                      program.enclosing_function(load.ref()) &&
                  program.runs_before(save.ref(), load.ref()) &&
                  !facts::exclusive(save.ref(), load.ref()) &&
                  !waits_between(program, save.ref(), load.ref());
         });
}

}  // namespace

void find_loads_without_barrier(const Program& program, Report& report) {
  for (const Pair& pair : kPairs)
    for (const CallRef& load : program.calls_named(pair.reads.substr(pair.reads.rfind('.') + 1))) {
      if (!is_call_of(load, pair.reads) ||
          (pair.reads == "open" && !opens_for(program, load, "r")) ||
          program.guarded_by_rank(load.ref()) != RankTest::none ||
          facts::rank_goes_first(program, load.ref()) || !is_read_too_early(program, load, pair))
        continue;
      report
          .at(load.ref(), Confidence::likely,
              "the file that rank 0 saves is loaded by all ranks without a barrier: they may read "
              "half of it")
          .help = "Call dist.barrier() between saving and loading.";
    }
}

}  // namespace bench::pitfalls
