// How much rules know of the files that they have seen: whether a comment in one that silenced
// nothing may be said to silence nothing. Safe to use from several threads.
#pragma once

#include "diagnose/driver/assemble.hpp"
#include "diagnose/driver/options.hpp"
#include "diagnose/driver/source_files.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace bench::diagnose {

// no: other files may have rules speak of it. itself: it is a program of several GPUs or ranks,
// whose launch lines may lie elsewhere. whole: all of its project was given.
enum class Seen : std::uint8_t { no, itself, whole };

class SeenFiles {
 public:
  explicit SeenFiles(const DiagnoseOptions& options);

  void note_ignores(const std::string& path);
  // Rules have run on the program that begins with the file.
  void note_program(const SourceFile& file, const AssembledProgram& assembled);
  // Rules have run on a shell script or config.
  void note_alone(const std::string& path);
  // Something could not be read: what it would have said of other files is not known.
  void note_gap();

  // It has a comment of ours.
  bool has_ignores(const std::string& path) const;
  Seen of(const std::string& path) const;

 private:
  bool is_project_given(const std::string& path) const;

  const DiagnoseOptions& options_;
  std::vector<std::string> folders_;  // that were given
  mutable std::mutex mutex_;
  bool has_gap_ = false;
  std::set<std::string> with_ignores_;
  std::set<std::string> programs_;  // that begin with the file itself
  std::set<std::string> in_programs_;
};

}  // namespace bench::diagnose
