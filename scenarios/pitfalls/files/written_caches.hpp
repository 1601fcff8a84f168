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

// pickle.dump(index, open(path, "wb")) and its kin, torch.save(...) among them, where the same
// function or class reads the very path and asks whether it is there: it writes where it is not.
std::vector<WrittenCache> written_caches(const Program& program);

}  // namespace bench::pitfalls
