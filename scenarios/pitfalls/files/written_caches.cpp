#include "scenarios/pitfalls/files/written_caches.hpp"

#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/path_form.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace bench::pitfalls {

using diagnose::FunctionRef;
using diagnose::Kind;

namespace {

struct CachePlace {
  std::string_view path;
  std::size_t index;  // of the path, or of the open file, among the arguments
};

constexpr CachePlace kCacheWriters[] = {
    {"pickle.dump", 1},
    {"json.dump", 1},
    {"joblib.dump", 1},
    {"dill.dump", 1},
    {"numpy.save", 0},
    {"numpy.savez", 0},
    {"yaml.dump", 1},
    {"numpy.savetxt", 0},
    {"numpy.savez_compressed", 0},
    {"torch.save", 1},
    {"scipy.sparse.save_npz", 0},
};

constexpr CachePlace kCacheReaders[] = {
    {"pickle.load", 0},         {"json.load", 0},
    {"joblib.load", 0},         {"dill.load", 0},
    {"numpy.load", 0},          {"yaml.load", 0},
    {"yaml.safe_load", 0},      {"numpy.loadtxt", 0},
    {"torch.load", 0},          {"pandas.read_csv", 0},
    {"pandas.read_parquet", 0}, {"pandas.read_pickle", 0},
    {"pandas.read_json", 0},    {"scipy.sparse.load_npz", 0},
};

// The path of a call of the table, also of the file that open(path, mode) gives, whose mode holds
// the letter.
template <std::size_t kCount>
Ref cache_path(const Program& program, const CallRef& call, const CachePlace (&table)[kCount],
               std::string_view letter) {
  for (const CachePlace& each : table) {
    if (call.call->path != each.path) continue;
    const Ref given = call.positional(each.index);
    const CallRef opened = given ? program.made_by(given) : CallRef{};
    if (!opened || opened.call->name != "open") return given;
    const std::string mode = program.string(opened.argument(1, "mode")).value_or("r");
    if (!facts::contains(mode, letter)) return {};
    return opened.receiver() && opened.call->path.empty() ? opened.receiver()
                                                          : opened.positional(0);
  }
  return {};
}

// table.to_csv(path), which is not told to append.
Ref path_of_table(const CallRef& call) {
  for (const std::string_view name : {"to_csv", "to_parquet", "to_pickle", "to_json"})
    if (call.call->name == name && call.receiver() && !call.keyword("mode"))
      return call.positional(0);
  return {};
}

Ref cache_written(const Program& program, const CallRef& call) {
  const Ref path = path_of_table(call);
  return path ? path : cache_path(program, call, kCacheWriters, "w");
}

// load_samples(path), h5py's and others by their names: what they are given where the file is
// there.
bool is_named_reading(std::string_view name) { return says_any(name, {"load", "read"}); }

bool asks_for_file(Ref condition) {
  return holds_any(condition.text(), {"exists(", "isfile(", "is_file("});
}

// Under `if os.path.exists(path):`, or in its other branch.
bool is_under_question(const Program& program, Ref node, bool there) {
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    const bool negated = guard.condition.kind() == Kind::not_expression;
    return asks_for_file(guard.condition) && (guard.holds != negated) == there;
  });
}

// self.read() or self.make(), and `with open(path) as f: return pickle.load(f)` above the write:
// what is read does without the write.
bool leaves_with(const Program& program, Ref read, Ref write) {
  return program.enclosing_function(read) != program.enclosing_function(write) ||
         read.module->tree().ancestor(read.node, Kind::return_statement) != diagnose::kNoNode;
}

bool are_beside(const Program& program, Ref a, Ref b) {
  const auto owner = program.enclosing_class(a);
  return a.module == b.module &&
         (owner ? owner == program.enclosing_class(b)
                : program.enclosing_function(a) == program.enclosing_function(b));
}

// What two functions have under one name of a parameter may be two files.
bool is_path_of(const Program& program, Ref a, Ref b) {
  const bool is_name = a.kind() == Kind::identifier;
  if (is_name ? program.same_variable(a, b) : a.text() == b.text()) return true;
  const std::string form = path_form(program, a);
  const bool is_here = program.enclosing_function(a) == program.enclosing_function(b);
  return !form.empty() && (is_here || !facts::contains(form, "<")) && form == path_form(program, b);
}

// The `try` in whose body the read stands; empty where it stands in none.
Ref attempt_of(const CallRef& read) {
  const auto& tree = read.module->tree();
  const auto attempt = tree.ancestor(read.call->node, Kind::try_statement);
  const bool is_tried = attempt != diagnose::kNoNode &&
                        tree.contains(tree.child(attempt, diagnose::Field::body), read.call->node);
  return is_tried ? read.ref().with(attempt) : Ref{};
}

// except FileNotFoundError: says that the file is not there. Half a file raises something else.
bool catches_missing_file_alone(Ref attempt) {
  const auto& tree = attempt.module->tree();
  bool is_caught = false;
  for (auto at = tree[attempt.node].first_child; at != diagnose::kNoNode;
       at = tree[at].next_sibling) {
    if (tree[at].kind != Kind::except_clause) continue;
    const std::string_view head = tree.text(at).substr(0, tree.text(at).find(':'));
    if (!holds_any(head, {"FileNotFoundError", "OSError", "IOError"}) ||
        holds_any(head, {",", "|"}))
      return false;
    is_caught = true;
  }
  return is_caught;
}

// try: pickle.load(...), and the file is made anew where that fails: half a file is no harm.
bool bears_half_a_file(const CallRef& read) {
  const Ref attempt = attempt_of(read);
  return attempt && !catches_missing_file_alone(attempt);
}

// try: pickle.load(...) except FileNotFoundError: ...; pickle.dump(...)
bool is_written_where_missing(Ref write, const CallRef& read) {
  const Ref attempt = attempt_of(read);
  const auto& tree = write.module->tree();
  if (!attempt || attempt.module != write.module || !catches_missing_file_alone(attempt))
    return false;
  const auto clause = tree.ancestor(write.node, Kind::except_clause);
  return clause != diagnose::kNoNode && tree[clause].parent == attempt.node;
}

// Nothing but its callers decides whether the function writes: it asks neither for the rank nor
// for a lock.
bool always_does(const Program& program, const CallRef& call, FunctionRef function) {
  const std::string text = facts::lowered(function.module->text(function.function->body));
  return program.guards(call.ref()).empty() &&
         !holds_any(text,
                    {"rank", "barrier", "main_process", "is_master", "lock", "rename", "replace("});
}

// save_pickle(index, path) for the pickle.dump() in it, whose path the function is given. States of
// a training are saved by helpers, too: that is another rule's.
void add_calls_of_helpers(const Program& program, std::vector<WrittenCache>& places) {
  const std::size_t count = places.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto [call, path] = places[i];
    const FunctionRef helper = program.enclosing_function(call.ref());
    if (!helper || call.call->path.starts_with("torch.") || !facts::is_parameter(program, path) ||
        !always_does(program, call, helper))
      continue;
    for (const CallRef& site : program.call_sites(helper))
      if (const Ref given = facts::argument_for(site, helper, path.text()))
        places.push_back({site, given});
  }
}

// The write stands where the file is missing, or the read where it is there, and is all that is
// done then. Helpers, and what is known by its name alone, keep states and results as well: there
// the write has to ask.
bool is_written_for(const Program& program, const WrittenCache& write, const WrittenCache& read) {
  const Ref node = write.write.ref();
  const Ref other = read.write.ref();
  if (is_under_question(program, node, false) || is_written_where_missing(node, read.write))
    return true;
  return is_under_question(program, other, true) && leaves_with(program, other, node) &&
         cache_written(program, write.write) && cache_path(program, read.write, kCacheReaders, "r");
}

}  // namespace

std::vector<WrittenCache> written_caches(const Program& program) {
  std::vector<WrittenCache> writes;
  std::vector<WrittenCache> reads;
  for (const diagnose::Module* module : program.modules()) {
    const std::vector<std::uint32_t>& readers = module->calls_that(is_named_reading);
    for (std::uint32_t index = 0; index < module->calls().size(); ++index) {
      const CallRef call{module, &module->calls()[index]};
      if (const Ref path = cache_written(program, call)) writes.push_back({call, path});
      const bool may_read = std::binary_search(readers.begin(), readers.end(), index);
      if (const Ref path = cache_path(program, call, kCacheReaders, "r");
          path && !bears_half_a_file(call))
        reads.push_back({call, path});
      else if (const Ref given = may_read ? call.positional(0) : Ref{};
               given && !bears_half_a_file(call))
        reads.push_back({call, given});
    }
  }
  add_calls_of_helpers(program, writes);
  add_calls_of_helpers(program, reads);
  std::erase_if(reads, [](const WrittenCache& each) { return bears_half_a_file(each.write); });
  std::erase_if(writes, [&](const WrittenCache& each) {
    return std::none_of(reads.begin(), reads.end(), [&](const WrittenCache& read) {
      return are_beside(program, each.write.ref(), read.write.ref()) &&
             is_path_of(program, each.path, read.path) && is_written_for(program, each, read);
    });
  });
  return writes;
}

}  // namespace bench::pitfalls
