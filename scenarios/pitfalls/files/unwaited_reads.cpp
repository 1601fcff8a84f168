#include "scenarios/pitfalls/files/unwaited_reads.hpp"

#include "scenarios/pitfalls/files/file_calls.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/path_form.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>
#include <string>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::RankTest;

namespace {

// A barrier, a collective, a sleep until the file is there.
bool makes_wait(const CallRef& call) {
  if (diagnose::is_collective(call.call->api)) return true;
  return says_any(call.call->name, {"barrier", "wait", "synchronize", "broadcast", "reduce",
                                    "gather", "sleep", "process_first", "prepare"});
}

bool meets_others(const Program& program, const CallRef& call) {
  if (program.guarded_by_rank(call.ref()) == RankTest::main_only) return false;
  // DDP's backward pass reduces the gradients with the others.
  return (call.call->name == "backward" && program.has_ddp()) || makes_wait(call) ||
         program.subtree_calls(call.ref(), makes_wait);
}

bool waits_between(const Program& program, const CallRef& write, const CallRef& read) {
  const auto& calls = write.module->calls();
  return std::any_of(calls.begin(), calls.end(), [&](const diagnose::Call& made) {
    return made.node > write.call->node && made.node < read.call->node &&
           meets_others(program, {write.module, &made});
  });
}

// A file is written or read, here or by what a call of the place runs.
struct FileUse {
  CallRef call;      // torch.save(...)
  CallRef place;     // that call, or the one of the function that it stands in
  std::string form;  // of the path
};

// The path as the caller of the function spells it, whose parameters are marked in the form.
std::string given_by(const Program& program, std::string form, const CallRef& site,
                     diagnose::FunctionRef function) {
  for (const diagnose::Parameter& each : function.function->parameters) {
    const std::string own = mark_in_path({function.module, each.node});
    const std::string named = "<" + std::string(each.name) + ">";
    const std::string& mark = facts::contains(form, own) ? own : named;
    const auto at = form.find(mark);
    if (at == std::string::npos) continue;
    Ref given = facts::argument_for(site, function, each.name);
    if (!given) given = Ref{function.module, each.default_value};
    if (given) form.replace(at, mark.size(), path_form(program, given));
  }
  return form;
}

// In the function of the use there is nothing before (or behind) it that makes the ranks wait.
bool is_alone_in_its_function(const Program& program, const CallRef& use, bool before) {
  const diagnose::FunctionRef function = program.enclosing_function(use.ref());
  const auto calls = facts::calls_in({function.module, function.function->body});
  return std::none_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    const bool is_there =
        before ? call.call->node < use.call->node : call.call->node > use.call->node;
    return is_there && meets_others(program, call);
  });
}

// The calls of a function; of __call__, those of the class's objects: stopper(loss, path).
std::vector<CallRef> sites_of(const Program& program, diagnose::FunctionRef function) {
  std::vector<CallRef> out = program.call_sites(function);
  const diagnose::ClassRef cls =
      function.function->name == "__call__"
          ? program.enclosing_class({function.module, function.function->body})
          : diagnose::ClassRef{};
  if (!cls) return out;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef call{module, &made};
      const Ref object{module, made.function};
      if ((object.kind() == Kind::identifier || object.kind() == Kind::attribute) &&
          program.class_of(object) == cls)
        out.push_back(call);
    }
  return out;
}

// The use itself, the calls of the function that it stands in, and so on: stopper(loss, path) ->
// self.save(loss, path) -> torch.save(...).
void add_uses(const Program& program, const FileUse& use, bool reads, int depth,
              std::vector<FileUse>& out) {
  constexpr std::size_t kMostSites = 8;
  out.push_back(use);
  const diagnose::FunctionRef function = program.enclosing_function(use.place.ref());
  if (depth == 0 || !function || !is_alone_in_its_function(program, use.place, reads)) return;
  const auto sites = sites_of(program, function);
  for (std::size_t i = 0; i < std::min(sites.size(), kMostSites); ++i)
    add_uses(program, {use.call, sites[i], given_by(program, use.form, sites[i], function)}, reads,
             depth - 1, out);
}

Ref path_left_by(const Program& program, const CallRef& write) {
  const Ref written = written_path(program, write);
  return written ? written : copied_path(write);
}

bool is_one_file(const Program& program, const FileUse& write, const FileUse& read) {
  if (!write.form.empty() && write.form == read.form) return true;
  const Ref a = path_left_by(program, write.call);
  const Ref b = read_path(program, read.call);
  return write.place.call == write.call.call && read.place.call == read.call.call &&
         a.kind() != Kind::call && a.text() == b.text();
}

bool is_written_by_one(const Program& program, const FileUse& write) {
  return (program.rank_guard(write.call.ref()) &&
          program.guarded_by_rank(write.call.ref()) == RankTest::main_only) ||
         (program.rank_guard(write.place.ref()) &&
          program.guarded_by_rank(write.place.ref()) == RankTest::main_only);
}

bool may_come_too_early(const Program& program, const FileUse& write, const FileUse& read) {
  return read.place.module == write.place.module &&
         read.place.call->node > write.place.call->node && is_one_file(program, write, read) &&
         program.guarded_by_rank(read.call.ref()) == RankTest::none &&
         program.guarded_by_rank(read.place.ref()) == RankTest::none &&
         program.enclosing_function(read.place.ref()) ==
             program.enclosing_function(write.place.ref()) &&
         only_runs_before(program, write.place.ref(), read.place.ref()) &&
         !facts::exclusive(write.place.ref(), read.place.ref()) &&
         !waits_between(program, write.place, read.place) &&
         !facts::only_without_distribution(program, read.place.ref()) &&
         !facts::only_without_distribution(program, read.call.ref()) &&
         facts::is_reachable(program, read.place.ref());
}

}  // namespace

std::vector<UnwaitedRead> unwaited_reads(const Program& program) {
  constexpr int kCalls = 3;  // that lead to a use
  std::vector<FileUse> writes;
  std::vector<FileUse> reads;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef call{module, &made};
      if (const Ref written = path_left_by(program, call);
          written && program.guarded_by_rank(call.ref()) == RankTest::main_only &&
          !program.comes_from_rank(written))
        add_uses(program, {call, call, path_form(program, written)}, false, kCalls, writes);
      if (const Ref read = read_path(program, call))
        add_uses(program, {call, call, path_form(program, read)}, true, kCalls, reads);
    }
  std::vector<UnwaitedRead> out;
  for (const FileUse& write : writes) {
    if (!is_written_by_one(program, write)) continue;
    const auto read = std::find_if(reads.begin(), reads.end(), [&](const FileUse& each) {
      return may_come_too_early(program, write, each);
    });
    if (read == reads.end()) continue;
    const bool is_told = std::any_of(out.begin(), out.end(), [&](const UnwaitedRead& each) {
      return each.place.call == read->place.call;
    });
    if (!is_told) out.push_back({read->place, read->call});
  }
  return out;
}

}  // namespace bench::pitfalls
