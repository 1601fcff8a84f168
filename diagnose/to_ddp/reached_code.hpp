// The code of a program that a run of its script may come by, by the names that stand in it. Calls
// that can be followed are; any other mention of a name reaches all functions of that name, so that
// what is not reached is not run: a helper's function that nobody calls, a mode of another script.
#pragma once

#include "diagnose/model/program.hpp"

#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace bench::diagnose {

class ReachedCode {
 public:
  explicit ReachedCode(const Program& program);

  // As if the script called the outermost function that leads to the node.
  void enter_above(Ref node);

  bool has(Ref node) const;
  bool has(const CallRef& call) const { return has(call.ref()); }
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
  void reach(FunctionRef function, Ref from);
  void make(ClassRef cls, Ref from);
  bool is_run_by_others(ClassRef cls, const Function& method) const;
  bool is_made(FunctionRef method) const;

  const Program& program_;
  std::map<std::pair<const Module*, const Function*>, std::vector<Place>> names_;
  std::unordered_map<std::string_view, std::vector<FunctionRef>> functions_;
  std::unordered_map<std::string_view, std::vector<ClassRef>> classes_;
  std::map<const Function*, Ref> reached_;  // with what led there first
  std::set<const Class*> made_;
  std::vector<std::pair<FunctionRef, Ref>> waiting_;  // methods of classes that are not made yet
  std::vector<FunctionRef> pending_;
  bool finds_any_ = false;
};

}  // namespace bench::diagnose
