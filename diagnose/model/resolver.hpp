// One walk from an expression to where its value comes from, as Program::sources() makes it. Names
// and parameters are followed in resolve.cpp, attributes in resolve_attribute.cpp and
// resolve_by_name.cpp, items of containers in resolve_item.cpp, names that a loop gives in
// resolve_loop.cpp. The walk is bounded in depth and width, so cycles and hostile code cost little.
#pragma once

#include "diagnose/model/program.hpp"
#include "diagnose/model/ways_seen.hpp"

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench::diagnose {

class Resolver {
 public:
  Resolver(const Program& program, bool through_module)
      : program_(program), through_module_(through_module) {}

  void follow(Ref at, int element = -1, int depth = 0);

  std::vector<Source> out;
  std::vector<Ref> names;  // that stand for the whole value on the way, nearest first

 private:
  static constexpr int kMaxDepth = 14;
  static constexpr std::size_t kMaxSources = 16;
  static constexpr std::int64_t kMaxNumber = 15;  // of a thing among those that a call gives

  void emit(Ref at, int element, Source::How how = Source::How::value);
  void follow_def(const Module& module, const Def& def, int element, int depth);
  void follow_name(Ref at, int element, int depth);
  bool follow_scope(Ref at, NodeId scope, std::span<const std::uint32_t> indices, int element,
                    int depth, bool same_scope);
  bool follow_imports(std::span<const Def* const> defs, Ref at, NodeId place, int element,
                      int depth);
  bool follow_imported(const Module& from, std::string_view path, int element, int depth);
  bool follow_starred(const Module& from, std::string_view name, int element, int depth);
  void follow_parameter(const Module& module, const Def& def, int element, int depth);
  void follow_spawned(const Function& function, std::size_t index, int element, int depth);
  void follow_call(Ref at, int element, int depth);

  void follow_attribute(Ref at, int element, int depth);
  void follow_class_attribute(ClassRef owner, std::string_view name, Ref use, int element,
                              int depth);
  void follow_given_from_outside(ClassRef owner, std::string_view name, int element, int depth);
  void follow_own_attribute(ClassRef owner, std::string_view name, Ref use, int element, int depth);
  void keep_wrapper(const Module& module, const std::vector<const Def*>& found);
  void follow_set_by_name(ClassRef owner, std::string_view name, int element, int depth);
  bool follow_read_by_name(const CallRef& call, int element, int depth);
  void follow_updates(ClassRef cls, std::string_view name, Ref use, int element, int depth);
  void follow_field(ClassRef owner, std::string_view name, int element, int depth);
  void follow_getter(ClassRef owner, std::string_view name, int element, int depth);
  bool follow_named(Ref object, std::string_view name, Ref use, int element, int depth);
  void follow_renamed(Ref object, std::string_view name, Ref use, int element, int depth);
  void follow_namespace(Ref object, std::string_view name, Ref use, int element, int depth);

  using Key = std::optional<std::string>;  // nothing where it is no literal

  void follow_subscript(Ref at, int element, int depth);
  void follow_numbered(Ref at, int element, int depth);
  bool is_broadcast_above(Ref container) const;
  bool follow_stored_at(Ref at, int element, int depth);
  void follow_stored_here(Ref container, const Key& key, int depth);
  void follow_item(Ref container, const Key& key, int depth);
  void follow_items_of(Ref container, const Key& key, int depth);
  bool follow_stored_items(Ref container, const Key& key, int depth);
  void follow_collected(Ref parameter, const Key& key, int depth);
  void follow_splatted(const CallRef& call, std::string_view name, int depth);
  bool follow_named_tuple(Ref made, std::string_view field, int depth);

  using Path = std::vector<int>;  // indices into nested tuples, outermost first

  void follow_loop(const Module& module, const Def& def, int depth);
  void follow_round(Ref iterable, Path path, int depth);
  void follow_picked(Ref item, const Path& path, int depth);
  void follow_appended(Ref list, const Path& path, int depth);

  // What a run picks by a name (resolve_look_up.cpp).
  bool follow_looked_up_call(const CallRef& call, int depth);
  bool follow_looked_up_attribute(Ref object, std::string_view name, int depth);
  bool follow_looked_up_item(Ref container, int depth);
  void follow_looked_up_round(Ref iterable, Ref target, int depth);
  std::vector<const Module*> modules_of(Ref object) const;
  bool follow_class_of(const std::vector<const Module*>& files, std::string_view name, int depth);
  // The functions of a script are its own steps, and nothing that it looks up.
  enum class Functions : bool { left_out, too };
  bool follow_offered(const std::vector<const Module*>& files, ClassRef base, int depth,
                      Functions which = Functions::too);

  bool is_of_another_arity(Ref tuple) const;
  bool is_of_another_choice(Ref node) const;

  // Grows with each source, and with each way that leads to what has been followed already: equal
  // before and after where nothing is known of the value.
  std::size_t progress() const { return out.size() + met_again_; }
  bool is_full() const { return out.size() >= kMaxSources; }
  // Something else than None has been found since there were `before` sources.
  bool tells_more_than_none(std::size_t before) const;

  const Program& program_;
  bool through_module_;
  std::size_t arity_ = 0;  // of the unpacking that asks for the element; 0 where it may be any
  // The innermost call on the way that hands a word over, and what it runs: make("small").
  CallRef choosing_;
  FunctionRef chosen_in_;
  WaysSeen seen_;
  std::size_t met_again_ = 0;
  std::set<std::pair<Ref, std::string>> collected_;  // **kwargs and the key looked for
};

}  // namespace bench::diagnose
