// Calls that write or read a file, and the path that they are given.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// torch.save(x, path), np.save(path, x), open(path, "wb"), table.to_csv(path), joblib.dump(x,
// path); empty for other calls.
Ref written_path(const Program& program, const CallRef& call);

// torch.load(path), np.load(path), open(path), read_csv(path), joblib.load(path); empty for others.
Ref read_path(const Program& program, const CallRef& call);

// best for shutil.copyfile(path, best) and os.replace(path, best): the file that is there
// afterwards; empty for others.
Ref copied_path(const CallRef& call);

}  // namespace bench::pitfalls
