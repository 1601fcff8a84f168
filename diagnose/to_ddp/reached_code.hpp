// The code of a program that a run of its script may come by. Calls that can be followed are, those
// of what a run picks by a name too: each class that it may pick is made, and the methods that are
// called on the object are those of all of them. Any other mention of a name reaches all functions
// of that name, so that what is not reached is not run: a helper's function that nobody calls, a
// mode of another script. Made once for a program, and asked by all that rewrites it.
#pragma once

#include "diagnose/model/program.hpp"

#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace bench::diagnose {

// A script of sacred's, which has its command line run what is registered: ex.run_commandline(),
// @ex.automain.
bool is_experiment(const Module& script);

class ReachedCode {
 public:
  explicit ReachedCode(const Program& program);

  // As if the script called the outermost function that leads to the node.
  void enter_above(Ref node);

  const Program& program() const { return program_; }
  bool has(Ref node) const;
  bool has(const CallRef& call) const { return has(call.ref()); }
  // The same, by calls and not by names alone: what an edit may change. In the script itself it is
  // all code, whatever calls it: a file may be given that only offers what is used.
  bool comes_by(Ref node) const;
  bool is_run(Ref node) const;  // in the script too, something calls it
  // What led there first, function by function: the place in the caller, up to the script's own
  // level. Empty where the node stands at a file's own level.
  std::vector<Ref> way_to(Ref node) const;

 private:
  struct Place {
    NodeId id = kNoNode;  // an identifier that is read
    bool is_member = false;
  };

  void list_names(const Module& module);
  void start();
  void finish();
  bool is_entry(const Module& module, const Function& function) const;
  void run(const Module& module, const Function* function);
  void follow(Ref name, bool is_member);
  void find_all(Ref name, std::string_view word, bool is_member);
  bool may_mean(Ref name, bool is_member, FunctionRef function) const;
  bool follow_call(Ref name, const CallRef& call);
  void follow_lookup(const CallRef& call);
  void find_any_class();
  void offer_functions(const Module& module, Ref from);
  void offer_methods(const CallRef& fire);
  void reach(FunctionRef function, Ref from);
  void make(ClassRef cls, Ref from);
  bool is_run_by_others(ClassRef cls, const Function& method) const;
  bool is_made(FunctionRef method) const;

  const Program& program_;
  std::map<std::pair<const Module*, const Function*>, std::vector<Place>> names_;
  std::map<std::pair<const Module*, const Function*>, std::vector<CallRef>> unnamed_calls_;
  std::unordered_map<std::string_view, std::vector<FunctionRef>> functions_;
  std::unordered_map<std::string_view, std::vector<ClassRef>> classes_;
  std::map<const Function*, Ref> reached_;  // with what led there first
  std::set<const Class*> made_;
  std::vector<std::pair<FunctionRef, Ref>> waiting_;  // methods of classes that are not made yet
  std::vector<FunctionRef> pending_;
  bool finds_any_ = false;
};

}  // namespace bench::diagnose
