// What becomes of a file that torch.load reads: the state of a model that exists, or a model that
// was pickled as a whole.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// load_state_dict(torch.load(path)), or of a name that holds what was loaded or its items by name.
// What is not restored into a model may be lists of samples, which have no device.
bool is_restored(const Program& program, const CallRef& load);

// own[key] = value of its items, or own.update(loaded), and own is restored: parts of it may be.
bool is_filled_in(const Program& program, const CallRef& load);

// self.centers = checkpoint["centers"], where the name is a tensor on the GPU otherwise, or says
// that it averages weights; ema.load_state_dict(checkpoint["ema"]) of a class that keeps what it is
// given: nothing moves what was loaded.
bool is_used_as_loaded(const Program& program, const CallRef& load);

// model = torch.load(path), which is trained, evaluated, moved as a model or wrapped as it is.
bool is_whole_module(const Program& program, const CallRef& load);

// torch.save(model.module, path) or torch.save(model, path): the program writes whole modules.
bool pickles_modules(const Program& program);

// checkpoint["model_state"] of a file with that key, which nothing here writes: it is not one of
// those that the program saves.
bool is_of_other_files(const Program& program, Ref state);

// net.load_state_dict(torch.load(path)) below, in the same function, of what the save writes, into
// a model that has no wrapper yet: whatever other files do, this program fails.
bool restores_bare_itself(const Program& program, const CallRef& save);

}  // namespace bench::pitfalls
