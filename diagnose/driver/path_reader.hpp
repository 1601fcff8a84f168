// What an expression of a file says about a path: os.path.join(os.path.dirname(__file__), ".."),
// Path(__file__).parents[1] / "lib", f"{ROOT}/utils".
#pragma once

#include "diagnose/model/module.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace bench::diagnose {

struct ReadPath {
  std::string text;          // not normalized
  bool is_anchored = false;  // it begins at the file or the script, and at no place of its own
};

class PathReader {
 public:
  // Both outlive the reader.
  PathReader(const Module& module, const std::string& script) : module_(module), script_(script) {}

  // All that the expression may be: a loop's variable has several; empty where nothing is known.
  std::vector<ReadPath> read(NodeId expression) const { return read(expression, 0); }

 private:
  using Paths = std::vector<ReadPath>;
  Paths read(NodeId expression, int depth) const;
  Paths read_call(const Call& call, int depth) const;
  Paths read_name(NodeId name, int depth) const;
  Paths read_subscript(NodeId subscript, int depth) const;
  Paths read_binary(NodeId binary, int depth) const;
  Paths read_attribute(NodeId attribute, int depth) const;
  Paths read_holes(NodeId string, int depth) const;
  Paths read_format(NodeId text, const Call& call, int depth) const;
  Paths read_parameter(const Def& def, int depth) const;
  const Def* last_before(std::string_view name, bool is_attribute, NodeId use) const;

  const Module& module_;
  const std::string& script_;
};

}  // namespace bench::diagnose
