// Collects what there is to say on files, from several threads.
#pragma once

#include "diagnose/notice.hpp"

#include <map>
#include <mutex>
#include <string>
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

  // By file.
  std::vector<Notice> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<Notice> out;
    for (const auto& [file, notice] : on_files_) out.push_back(notice);
    return out;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Notice> on_files_;
};

}  // namespace bench::diagnose
