#include "scenarios/pitfalls/files/unwaited_reads.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::RankTest;

namespace {

struct FileCall {
  std::string_view name;
  std::size_t index;  // of the path among the arguments
};

constexpr FileCall kWriters[] = {
    {"save_to_disk", 0}, {"to_csv", 0},           {"to_parquet", 0},
    {"to_pickle", 0},    {"to_json", 0},          {"save_pretrained", 0},
    {"savez", 0},        {"savez_compressed", 0}, {"save_file", 1},
};

constexpr FileCall kReaders[] = {
    {"load_from_disk", 0}, {"read_csv", 0},        {"read_parquet", 0}, {"read_pickle", 0},
    {"read_json", 0},      {"from_pretrained", 0}, {"load_file", 0},
};

template <std::size_t kCount>
Ref path_in(const CallRef& call, const FileCall (&table)[kCount]) {
  for (const FileCall& each : table)
    if (call.call->name == each.name) return call.positional(each.index);
  return {};
}

// open(path, "wb"), and whether the file is written.
bool opens_for_writing(const Program& program, const CallRef& call) {
  const std::string mode = program.string(call.argument(1, "mode")).value_or("r");
  return holds_any(mode, {"w", "a", "x"});
}

Ref written_path(const Program& program, const CallRef& call) {
  if (call.call->api == Api::torch_save) return call.argument(1, "f");
  const std::string name = call.module->qualified(call.call->function);
  if (name == "numpy.save") return call.positional(0);
  if (call.call->name == "open" && !call.receiver())
    return opens_for_writing(program, call) ? call.positional(0) : Ref{};
  return path_in(call, kWriters);
}

Ref read_path(const Program& program, const CallRef& call) {
  if (call.call->api == Api::torch_load) return call.argument(0, "f");
  const std::string name = call.module->qualified(call.call->function);
  if (name == "numpy.load") return call.positional(0);
  if (call.call->name == "open" && !call.receiver())
    return opens_for_writing(program, call) ? Ref{} : call.positional(0);
  return path_in(call, kReaders);
}

// A barrier, a collective, a sleep until the file is there.
bool makes_wait(const CallRef& call) {
  if (diagnose::is_collective(call.call->api)) return true;
  return says_any(call.call->name, {"barrier", "wait", "synchronize", "broadcast", "reduce",
                                    "gather", "sleep", "process_first", "prepare"});
}

bool waits_between(const Program& program, const CallRef& write, const CallRef& read) {
  const auto& calls = write.module->calls();
  return std::any_of(calls.begin(), calls.end(), [&](const diagnose::Call& made) {
    const CallRef call{write.module, &made};
    return made.node > write.call->node && made.node < read.call->node &&
           program.guarded_by_rank(call.ref()) != RankTest::main_only &&
           (makes_wait(call) || program.subtree_calls(call.ref(), makes_wait));
  });
}

// path, after path = os.path.join(directory, "last.pt"), is that call.
Ref path_behind(const Program& program, Ref path) {
  if (path.kind() != Kind::identifier) return path;
  const auto& sources = program.sources(path);
  return sources.size() == 1 && sources.front().how == diagnose::Source::How::value &&
                 sources.front().ref.module == path.module
             ? sources.front().ref
             : path;
}

// The same name, or the same text of os.path.join(...), which draws nothing anew.
bool is_same_path(const Program& program, Ref written, Ref read) {
  if (!written || !read) return false;
  if (written.text() == read.text() && written.kind() != Kind::call) return true;
  const Ref a = path_behind(program, written);
  const Ref b = path_behind(program, read);
  const CallRef joined = program.as_call(a);
  return joined && a.text() == b.text() &&
         joined.module->qualified(joined.call->function) == "os.path.join";
}

}  // namespace

std::vector<CallRef> unwaited_reads(const Program& program) {
  std::vector<CallRef> out;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef write{module, &made};
      const Ref written = written_path(program, write);
      if (!written || program.guarded_by_rank(write.ref()) != RankTest::main_only ||
          !program.rank_guard(write.ref()) || program.comes_from_rank(written))
        continue;
      for (const diagnose::Call& later : module->calls()) {
        const CallRef read{module, &later};
        if (later.node < made.node || !is_same_path(program, written, read_path(program, read)) ||
            program.guarded_by_rank(read.ref()) != RankTest::none ||
            program.enclosing_function(read.ref()) != program.enclosing_function(write.ref()) ||
            !only_runs_before(program, write.ref(), read.ref()) ||
            facts::exclusive(write.ref(), read.ref()) || waits_between(program, write, read) ||
            facts::only_without_distribution(program, read.ref()) ||
            !facts::is_reachable(program, read.ref()))
          continue;
        out.push_back(read);
        break;
      }
    }
  return out;
}

}  // namespace bench::pitfalls
