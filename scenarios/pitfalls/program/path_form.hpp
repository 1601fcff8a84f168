// What a path is, whichever way it is spelled: folder + "/best.pth", f"{folder}/best.pth" and
// os.path.join(folder, "best.pth") are one path.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string>

namespace bench::pitfalls {

// The text of a path, with a mark of its own for each part that a run fills in. Two expressions of
// one form name one file. Empty where nothing of it is written out.
std::string path_form(const Program& program, Ref path);

// The mark of a part that has the value of this node and no other, as a parameter whose callers are
// not known.
std::string mark_in_path(Ref parameter);

}  // namespace bench::pitfalls
