// Calls that fetch a file from the network and write it to a path.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

struct Fetch {
  CallRef call;
  Ref path;  // empty where the call does not say
  // Written under another name and moved when it is whole: nobody reads half of it.
  bool is_moved = false;
};

// urllib.request.urlretrieve(url, path), gdown.download(...), os.system("wget ..."). Libraries that
// lock the files they cache, as Hugging Face's do, are left out.
std::vector<Fetch> fetches_of(const Program& program);

}  // namespace bench::pitfalls
