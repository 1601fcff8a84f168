// What the files of one program hold by a name, put together when the name is first asked for:
// rules and the walks to where values come from ask for the same names over and over, and a program
// may have a hundred files. Entries stay where they are as others are added.
#pragma once

#include "diagnose/model/by_text.hpp"
#include "diagnose/model/module.hpp"

#include <string_view>
#include <vector>

namespace bench::diagnose {

// object.name = value
struct AttributeDef {
  const Module* module = nullptr;
  const Def* def = nullptr;
  std::string_view object;
};

class NameTables {
 public:
  // In the order of the files, within a file in that of the source.
  const std::vector<AttributeDef>& attribute_defs(const std::vector<const Module*>& modules,
                                                  std::string_view name);
  // Some file has the word outside of comments.
  bool mentions(const std::vector<const Module*>& modules, std::string_view word);

 private:
  ByText<std::vector<AttributeDef>> attributes_;
  ByText<bool> mentioned_;
};

}  // namespace bench::diagnose
