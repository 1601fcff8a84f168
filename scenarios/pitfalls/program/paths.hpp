// Objects of pathlib: what they are, and the directories that mkdir makes through them.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// Path(a), root / "runs", out.parent, an option of type=Path.
bool is_path(const Program& program, Ref expression);

// The directory that os.mkdir(d), os.makedirs(d), Path(d).mkdir() or shutil.copytree(code, d)
// makes; empty for calls of the
// same name that are none of these.
Ref directory_made(const Program& program, const CallRef& make);

}  // namespace bench::pitfalls
