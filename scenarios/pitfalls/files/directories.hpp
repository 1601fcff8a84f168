// Directories that are there already where a process asks for them.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// if not os.path.exists(path): is all that stands around what makes it.
bool asks_whether_it_is_there(const Program& program, Ref make);

// if not os.path.exists(path): os.mkdir(path), which knows no exist_ok; os.makedirs does.
bool may_be_makedirs(const Program& program, const CallRef& make);

// The same process has made this directory above, by itself or as a parent of another, so that it
// is there for every rank by now.
bool is_made_above(const Program& program, const CallRef& make);

// A statement of the same block above makes a directory for which the ranks race already: the one
// that wins comes by alone, the others have raised.
bool is_behind_a_race(const Program& program, const CallRef& make);

// Under a lock that one process holds at a time, after it has asked whether the directory is there:
// with FileLock(...), or below fcntl.flock(file, fcntl.LOCK_EX).
bool is_made_under_a_lock(const Program& program, const CallRef& make);

// In the body of a try, or a `with suppress(OSError)`: who catches the error is ready for it. What
// an except clause makes, nobody catches.
bool is_attempted(const Program& program, const CallRef& make);

// The directory of a file that the same function loads further down and nothing writes before: the
// directory of a run that works is there.
bool holds_a_file_loaded_below(const Program& program, const CallRef& make);

}  // namespace bench::pitfalls
