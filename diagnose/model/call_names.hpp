// Which calls of a file have names that a test accepts. Rules look through all calls for names with
// some words in them; there are few names, and programs that share the file ask the same. Safe to
// ask from several threads.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

namespace bench::diagnose {

struct Call;

class CallNames {
 public:
  using Test = bool (*)(std::string_view name);

  // Indices into `calls`, which are the same at every call. They stay as long as the object.
  const std::vector<std::uint32_t>& that(Test says, const std::vector<Call>& calls);

 private:
  void tell_names_apart(const std::vector<Call>& calls);

  std::mutex mutex_;
  std::vector<std::string_view> names_;  // each once
  std::vector<std::uint32_t> name_of_;   // of each call, an index into names_
  std::map<Test, std::vector<std::uint32_t>> known_;
};

}  // namespace bench::diagnose
