// What the rewritten files call what DDP needs, and the imports that this takes.
#pragma once

#include "diagnose/finding.hpp"
#include "diagnose/model/program.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

class FileNames {
 public:
  explicit FileNames(const Program& program);

  // torch.distributed; imported by what asks for it, as are the others.
  std::string dist(const Module& file);
  // The index of the rank's GPU: a variable of the script, the GPU that it set in other files.
  std::string gpu(const Module& file);
  std::string wrapper(const Module& file);
  std::string sampler(const Module& file);
  void need_os(const Module& file) { need(file, kOs); }
  void need_torch(const Module& file) { need(file, kTorch); }

  const std::string& local_rank() const { return local_rank_; }
  // The files that something is to be imported into; each has at least one line.
  std::vector<const Module*> importers() const;
  // The lines, in the order of the standard library, torch and its parts.
  std::string imports_of(const Module& file) const;

 private:
  enum Need : unsigned { kOs = 1, kTorch = 2, kDist = 4, kWrapper = 8, kSampler = 16 };
  void need(const Module& file, Need what);
  bool is_own(const Module& file, std::string_view name) const;

  const Program& program_;
  std::string local_rank_;
  std::map<const Module*, unsigned> needs_;
};

// torch.distributed, as a step imports it: under its own name where the file has another `dist`.
std::string dist_name(const Module& file);

// The place for imports: the first statement of a file that is one, behind the docstring and
// __future__ imports; the first of all where there is none.
Ref first_import(const Module& file);
// The last import of the file's own level that ends above the byte; empty where there is none.
Ref last_import_above(const Module& file, std::uint32_t byte);

}  // namespace bench::diagnose
