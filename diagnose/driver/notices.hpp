// Collects what there is to say on files, from several threads.
#pragma once

#include "diagnose/notice.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace bench::diagnose {

class Notices {
 public:
  // On a file as a whole. The first stays, unless a graver one comes.
  void note(const std::string& file, std::string text, bool unchecked) {
    const std::lock_guard lock(mutex_);
    Notice& notice = on_files_[file];
    if (notice.text.empty() || (unchecked && !notice.unchecked))
      notice = {file, std::move(text), unchecked};
  }

  // On a line. All of them stay.
  void add(Notice notice) {
    const std::lock_guard lock(mutex_);
    on_lines_.push_back(std::move(notice));
  }

  // Something could not be checked.
  bool any_unchecked() const {
    const std::lock_guard lock(mutex_);
    return std::any_of(on_files_.begin(), on_files_.end(),
                       [](const auto& each) { return each.second.unchecked; });
  }

  // By file and line.
  std::vector<Notice> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<Notice> out;
    for (const auto& [file, notice] : on_files_) out.push_back(notice);
    out.insert(out.end(), on_lines_.begin(), on_lines_.end());
    std::stable_sort(out.begin(), out.end(), [](const Notice& a, const Notice& b) {
      return std::tie(a.file, a.line) < std::tie(b.file, b.line);
    });
    return out;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Notice> on_files_;
  std::vector<Notice> on_lines_;
};

}  // namespace bench::diagnose
