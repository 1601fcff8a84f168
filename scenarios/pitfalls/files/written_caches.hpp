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
// file is read instead; torch.save(...) only where it decides whether the file is written: what a
// run goes on from is asked for by the rule of saves.
std::vector<WrittenCache> written_caches(const Program& program);

}  // namespace bench::pitfalls
