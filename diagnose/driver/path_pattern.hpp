// Globs that name files and folders, as .gitignore has them: a name without a slash is met
// anywhere, one with a slash is a path from the folder that the pattern belongs to (or an absolute
// one into it), a slash at the end means folders alone. `*` and `?` stay within a name, `**` spans
// folders, [a-z] is one character of a set. What lies in a folder that a pattern names is meant
// too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

class PathPattern {
 public:
  // `folder` is absolute. `origin` says where the pattern stands ("--exclude", "bench.toml:3:
  // exclude"); a text that is no glob is a UsageError that begins with it.
  PathPattern(const std::string& glob, const std::string& folder, const std::string& origin);

  // A path by its parts below the root of the file system, or the path of a folder.
  bool matches(const std::vector<std::string>& parts, bool is_folder) const;
  // "'third_party/**' (bench.toml:3: exclude)"
  const std::string& shown() const { return shown_; }

 private:
  std::vector<std::string> base_;  // the parts of the folder it belongs to
  std::vector<std::string> glob_;  // part by part; ** stands alone
  bool is_of_folders_ = false;
  std::string shown_;
};

// Several of them, of which one is enough.
class PathPatterns {
 public:
  void add(PathPattern pattern) { patterns_.push_back(std::move(pattern)); }
  bool empty() const { return patterns_.empty(); }
  // The first that names the path, which is written as the user would; null without one.
  const PathPattern* match(const std::string& path, bool is_folder = false) const;

 private:
  std::vector<PathPattern> patterns_;
};

// An absolute path by its parts, without "." and "..".
std::vector<std::string> parts_of_path(const std::string& path);

// The current folder.
std::string current_folder();

}  // namespace bench::diagnose
