// Where a program writes: what each rank would write, too.
#pragma once

#include "diagnose/model/program.hpp"

#include <string_view>
#include <vector>

namespace bench::diagnose {

// The path that a call writes a file to; empty for other calls, and for checkpoints of torch.save.
Ref path_written(const Program& program, const CallRef& call);

// h5py.File(path, "r"), gzip.open(path) and their kin; empty for other calls.
Ref path_opened_to_read(const Program& program, const CallRef& call);

// The path that a call makes a directory, a log or a file by.
Ref place_made(const Program& program, const CallRef& call);

// Nobody else writes there: the rank is in the path, or a name that each process draws for what it
// needs for itself.
bool is_of_one_rank(const Program& program, Ref path);

// A path that is a stream: savefig(buffer), after buffer = io.BytesIO(), and sys.stdout.
bool is_stream(const Program& program, Ref path);

// A stream, or a place that each process has for itself: tempfile.mkdtemp().
bool is_private(const Program& program, Ref path);

// os.path.exists(out), out.is_dir(): the call, or some call in the text, asks for a file.
bool asks_whether_there(const CallRef& call);
bool asks_whether_there(std::string_view text);

// Within def download(url): what is written there is fetched, not made.
bool is_in_download(const Program& program, Ref node);

// In a data set's class, where samples are read: each rank has its own. What its constructor does,
// all ranks do.
bool is_of_samples(const Program& program, Ref node);

// Two expressions give one path: the same variable, the same text beside each other, one source.
bool is_same_path(const Program& program, Ref a, Ref b);

// What the path is named by where each rank draws a name of its own: uuid4(), randint(...) that
// nobody seeds. Not what has a place of its own for good reason: tempfile, the process id.
std::vector<Ref> draws_behind(const Program& program, Ref path);

// strftime, datetime.now() and their kin.
bool is_clock(const CallRef& call);

// The readings of the clock that a path is named by, of this run.
std::vector<Ref> clocks_behind(const Program& program, Ref path);

}  // namespace bench::diagnose
