// One walk from an expression to where its value comes from, as Program::sources() makes it. Names
// and parameters are followed in resolve.cpp, attributes in resolve_attribute.cpp, items of
// containers in resolve_item.cpp. The walk is bounded in depth and width, so cycles and hostile
// code cost little.
#pragma once

#include "diagnose/model/program.hpp"

#include <optional>
#include <set>
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

 private:
  void emit(Ref at, int element, Source::How how = Source::How::value);
  void follow_def(const Module& module, const Def& def, int element, int depth);
  void follow_name(Ref at, int element, int depth);
  bool follow_scope(Ref at, NodeId scope, const std::vector<std::uint32_t>& indices, int element,
                    int depth, bool same_scope);
  bool follow_imported(const Module& from, std::string_view path, int element, int depth);
  void follow_parameter(const Module& module, const Def& def, int element, int depth);
  void follow_spawned(const Function& function, std::size_t index, int element, int depth);
  void follow_call(Ref at, int element, int depth);

  void follow_attribute(Ref at, int element, int depth);
  void follow_class_attribute(ClassRef owner, std::string_view name, Ref use, int element,
                              int depth);
  void follow_namespace(Ref object, std::string_view name, Ref use, int element, int depth);

  void follow_subscript(Ref at, int element, int depth);
  void follow_items(Ref container, const std::optional<std::string>& key, int depth);

  const Program& program_;
  bool through_module_;
  std::set<std::pair<Ref, int>> seen_;
};

}  // namespace bench::diagnose
