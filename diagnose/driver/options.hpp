// What `bench diagnose` is asked for, by flags and by a project's settings.
#pragma once

#include "diagnose/driver/path_pattern.hpp"
#include "diagnose/driver/selection.hpp"
#include "diagnose/syntax/tree.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

// Rules that are not wanted in some files, by id, name, prefix or category.
struct FileIgnores {
  PathPattern files;
  std::vector<std::string> rules;
};

// A text that stands in place of a file: what an editor holds and has not saved.
struct GivenText {
  std::string path;  // as findings show it
  std::string text;
  bool has_place = true;  // false: there is no such path, and nothing lies beside it
};

struct DiagnoseOptions {
  std::vector<std::string> paths;
  std::optional<std::string> launch;  // a launch line for the scripts
  std::optional<int> gpus;
  Selection selection;
  // Files that are not checked, unless they are named themselves. What checked programs import is
  // read all the same.
  PathPatterns exclude;
  std::vector<FileIgnores> per_file_ignores;
  std::optional<GivenText> given_text;  // instead of all paths
  unsigned threads = 0;                 // 0: as many as there are cores
  // What a run picks by a name is followed to all that it may be (ProgramInput).
  bool follows_look_ups = false;
  // A file that takes longer to parse is not a training script but an attack or a data dump.
  std::chrono::microseconds parse_limit = SyntaxTree::kParseLimit;

  // The rule of this id is not wanted in the file.
  bool ignores(const std::string& file, std::string_view id) const;
};

}  // namespace bench::diagnose
