// Parsed files, shared by the programs that import them. Safe to use from several threads; what it
// holds is bounded, and a module stays alive as long as a program uses it.
#pragma once

#include "diagnose/model/module.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace bench::diagnose {

// Content of a file, or nothing. Tests read from memory.
using Reader = std::function<std::optional<std::string>(const std::string& path)>;

class ModuleCache {
 public:
  explicit ModuleCache(Reader reader) : reader_(std::move(reader)) {}

  // Null when there is no such file.
  std::shared_ptr<const Module> load(const std::string& path);
  std::optional<std::string> read(const std::string& path) const { return reader_(path); }

 private:
  // Source bytes kept after parsing; trees are about ten times as large.
  static constexpr std::size_t kMaxBytes = 24U << 20;

  Reader reader_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Module>> modules_;
  std::size_t bytes_ = 0;
};

}  // namespace bench::diagnose
