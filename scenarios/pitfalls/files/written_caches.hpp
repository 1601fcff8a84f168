// Files that keep what a program has computed, for whoever comes next: read where they are there,
// written where they are not.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

struct WrittenCache {
  CallRef write;
  Ref path;
};

// pickle.dump(index, open(path, "wb")) and its kin, where os.path.exists(path) decides whether the
// file is read instead. What torch.save writes is asked for by the rule of saves.
std::vector<WrittenCache> written_caches(const Program& program);

}  // namespace bench::pitfalls
