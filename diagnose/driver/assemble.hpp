// From one script to its program: the local files it imports are found and parsed, a bounded number
// of them and never outside the tree the user named.
#pragma once

#include "diagnose/driver/directory.hpp"
#include "diagnose/driver/module_cache.hpp"
#include "diagnose/model/program.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

// Files of one program. A cut one lacks calls whose absence rules speak of, so this bounds work and
// is not meant to be met: a model zoo easily brings 60 files before the trainer's helpers.
inline constexpr std::size_t kMaxModules = 96;

// Of a file that is looked at for itself alone, with what stands behind its names.
inline constexpr std::size_t kNearestModules = 24;

struct AssembledProgram {
  std::vector<std::shared_ptr<const Module>> keep_alive;
  std::unique_ptr<Program> program;  // null when the script cannot be read
  bool is_cut = false;               // files that it imports are left out
};

using TextTest = std::function<bool(std::string_view text)>;

struct ProgramContext {
  std::string top;  // imports are followed inside this directory only
  std::size_t most_modules = kMaxModules;
  std::vector<LaunchLine> launches;
  NewestVersions newest;
  std::optional<int> gpus;
  Lister list;  // of directories, for questions about files beside the script
  ShippedValues shipped;
  std::function<bool(const std::string& question, const TextTest& accepts)> any_in_project;
  std::function<std::vector<std::pair<std::string, std::uint32_t>>(
      const std::function<std::optional<std::uint32_t>(std::string_view text)>& line_of)>
      where_in_project;
  std::function<std::vector<std::string>()> scripts_above;
  bool follows_look_ups = false;  // see ProgramInput
};

// Directories from the file's own up to `top`, nearest first.
std::vector<std::string> directories_above(const std::string& file, const std::string& top);

// The path is a link, or goes through one, that ends outside of `top`. Files that are not on disk
// (tests keep theirs in memory) lead nowhere.
bool links_out_of(const std::string& path, const std::string& top);

// Some Python file in the directory, other than `but`, has a text that is accepted; a bounded
// number of them is read.
bool any_script_in(const std::string& directory, const std::string& but, const std::string& top,
                   const Lister& list, const ModuleCache& cache, const TextTest& accepts);

AssembledProgram assemble(const std::string& script, const ProgramContext& context,
                          ModuleCache& cache);

// The import is of a package that is never the user's own.
bool is_external_import(std::string_view import);

// The files that an import may mean to a file of the importer's directory, and, where it is no
// relative one, to whatever the script runs: in the directories above it, and in the src/ of one.
// candidates_in() are those in a directory that is known.
std::vector<std::string> candidates_in(const std::string& directory, std::string_view import,
                                       const std::string& top);
std::vector<std::string> candidates_beside(const std::string& importer, std::string_view import,
                                           const std::string& top);
std::vector<std::string> candidates_above(const std::string& script, std::string_view import,
                                          const std::string& top);

// Both, most likely first; none for well-known packages.
std::vector<std::string> import_candidates(const std::string& importer, const std::string& script,
                                           const std::string& import, const std::string& top);

}  // namespace bench::diagnose
