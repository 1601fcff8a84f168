// Where a script that is turned into one for DDP joins its process group: above all that needs the
// ranks, and once.
#pragma once

#include "diagnose/model/program.hpp"

#include <vector>

namespace bench::diagnose {

struct DdpEntry {
  Ref first;  // the statement to join above
  Ref last;   // the statement to leave behind; empty where the script does not run it itself
};

// if args.mode == "prepare": return, above what joins the group, in a function on the way there:
// such a run comes to the end without a group.
bool may_return_above(const Program& program, const DdpEntry& entry);

// fire.Fire(Runner) and fire.Fire(Runner()) of the script: the statement that makes the object and
// runs whichever method the command line names. Empty where there is none.
Ref commands_of_class(const Program& program);

// Follows the script from its own level down to the block whose statements reach `needs` (nodes of
// the program that need the group or the GPU of the rank): through `if __name__ ...` and calls that
// are the only way, as in main(parse_args()). The group is left behind the call that leads there,
// whatever returns inside. A file that only offers what is needed joins in the outermost function
// that leads to the first need, and above the commands that a class offers.
DdpEntry ddp_entry(const Program& program, const std::vector<Ref>& needs);

}  // namespace bench::diagnose
