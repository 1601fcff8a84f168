#include "diagnose/driver/path_pattern.hpp"

#include "bench/core/error.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <span>

namespace bench::diagnose {
namespace {

constexpr std::string_view kAnyFolders = "**";

// Why a text is no glob; empty when it is one.
std::string why_no_glob(std::string_view glob) {
  if (glob.empty()) return "is empty";
  if (glob.front() == '!') return "begins with !: what it would take back cannot be said here";
  for (std::size_t at = 0; at < glob.size(); ++at) {
    if (glob[at] == '\\' && ++at == glob.size()) return "ends in a lone backslash";
    if (glob[at] != '[') continue;
    std::size_t end = at + 1;
    if (end < glob.size() && (glob[end] == '!' || glob[end] == '^')) ++end;
    // A bracket that comes first is one of the set.
    end = glob.find_first_of("]/", end + 1);
    if (end == std::string_view::npos || glob[end] == '/') return "has a [ without its ]";
    at = end;
  }
  return {};
}

// {a,b} of shells, or a half of it where a comma has parted it; {name} may well be a name.
bool has_alternatives(std::string_view glob) {
  int depth = 0;
  for (std::size_t at = 0; at < glob.size(); ++at) {
    const char c = glob[at];
    if (c == '\\') ++at;
    if (c == '{') ++depth;
    if (c == '}' && depth-- == 0) return true;
    if (c == ',' && depth > 0) return true;
  }
  return depth > 0;
}

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0 && path.substr(0, end) != ".") parts.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

bool part_matches(const std::string& glob, const std::string& part) {
  return ::fnmatch(glob.c_str(), part.c_str(), 0) == 0;
}

// The whole of `parts`. Of several ** only the last one met has to give way: what the ones before
// it took is as good as anything that they could take.
bool all_match(const std::vector<std::string>& glob, std::span<const std::string> parts) {
  std::size_t at = 0;
  std::size_t part = 0;
  std::size_t any = glob.size();  // the ** met last
  std::size_t taken = 0;          // where what it does not take begins
  while (part < parts.size()) {
    if (at < glob.size() && glob[at] == kAnyFolders) {
      any = at++;
      taken = part;
      if (at == glob.size()) return true;  // at the end it stands for what lies within
    } else if (at < glob.size() && part_matches(glob[at], parts[part])) {
      ++at;
      ++part;
    } else if (any < glob.size()) {
      at = any + 1;
      part = ++taken;
    } else {
      return false;
    }
  }
  return at == glob.size();
}

}  // namespace

std::vector<std::string> parts_of_path(const std::string& path) {
  std::error_code error;
  const auto full = std::filesystem::absolute(path, error);
  return split((error ? std::filesystem::path(path) : full).lexically_normal().string());
}

std::string current_folder() {
  std::error_code error;
  return std::filesystem::current_path(error).string();
}

PathPattern::PathPattern(const std::string& glob, const std::string& folder,
                         const std::string& origin)
    : base_(parts_of_path(folder)), shown_("'" + glob + "' (" + origin + ")") {
  const auto refuse = [&](const std::string& why) {
    throw UsageError(origin + ": '" + glob + "' " + why +
                     "; expected a glob, such as third_party/**, *.ipynb or the name of a folder");
  };
  if (const std::string why = why_no_glob(glob); !why.empty()) refuse(why);
  if (has_alternatives(glob))
    refuse("has alternatives in braces, which are not known here; write a glob for each, or \\{");
  is_of_folders_ = glob.ends_with('/');
  glob_ = split(glob);
  // An absolute path into the folder, as a shell's $PWD/old gives it.
  if (glob.starts_with('/') && glob_.size() > base_.size() &&
      std::equal(base_.begin(), base_.end(), glob_.begin()))
    glob_.erase(glob_.begin(), glob_.begin() + static_cast<std::ptrdiff_t>(base_.size()));
  while (!glob_.empty() && glob_.front() == "..") {
    if (!base_.empty()) base_.pop_back();
    glob_.erase(glob_.begin());
  }
  if (glob_.empty()) refuse("names no file and no folder");
  if (glob.find('/') >= glob.size() - 1) glob_.insert(glob_.begin(), std::string(kAnyFolders));
}

bool PathPattern::matches(const std::vector<std::string>& parts, bool is_folder) const {
  const auto split_at = std::mismatch(base_.begin(), base_.end(), parts.begin(), parts.end());
  // Of a path beside the pattern's folder, what lies below the folder that both share is looked
  // at for names; a path cannot lead there.
  if (split_at.first != base_.end() && glob_.front() != kAnyFolders) return false;
  const std::span<const std::string> below(split_at.second, parts.end());
  for (std::size_t count = 1; count <= below.size(); ++count) {
    if (is_of_folders_ && count == below.size() && !is_folder) break;
    if (all_match(glob_, below.first(count))) return true;
  }
  return false;
}

const PathPattern* PathPatterns::match(const std::string& path, bool is_folder) const {
  if (patterns_.empty()) return nullptr;
  const std::vector<std::string> parts = parts_of_path(path);
  for (const PathPattern& pattern : patterns_)
    if (pattern.matches(parts, is_folder)) return &pattern;
  return nullptr;
}

}  // namespace bench::diagnose
