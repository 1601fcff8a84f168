// Files, logs and trackers that every rank writes.
#include "diagnose/to_ddp/output_paths.hpp"
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "scenarios/pitfalls/files/file_calls.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/paths.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// By the path of what is called, whole or from a dot on.
constexpr std::string_view kTrackers[] = {
    "SummaryWriter",
    "wandb.init",
    "mlflow.start_run",
    "neptune.init_run",
    "neptune.init",
    "swanlab.init",
    "comet_ml.Experiment",
    "comet_ml.start",
    "clearml.Task.init",
    "Task.init",
    "aim.Run",
    "visdom.Visdom",
    "FileWriter",
    "dvclive.Live",
    "FileStorageObserver",
    "FileStorageObserver.create",
    "MongoObserver",
    "MongoObserver.create",
    "create_file_writer",
    "tensorboard_logger.Logger",
    "tensorboard_logger.configure",
};

bool ends_in(std::string_view path, std::string_view name) {
  return path == name || (path.size() > name.size() && path.ends_with(name) &&
                          path[path.size() - name.size() - 1] == '.');
}

bool is_tracker(const CallRef& call) {
  // importlib.import_module(name).SummaryWriter(out) has a name alone.
  return std::any_of(std::begin(kTrackers), std::end(kTrackers), [&](std::string_view name) {
    return ends_in(call.call->path, name) || call.call->name == name;
  });
}

// s3.download_file(bucket, key, path), urlretrieve(url, path): what fetches by its name. The hubs'
// own downloads lock the file.
bool is_fetch(const CallRef& call) {
  static constexpr std::string_view kNames[] = {
      "urlretrieve",  "download_file", "download_fileobj",
      "download_url", "download_blob", "download_and_extract_archive",
  };
  const auto given = pitfalls::facts::arguments_of(call);
  // A file of the process, which is put in its place when it is whole.
  if (std::any_of(given.begin(), given.end(), [](Ref each) {
        return pitfalls::says_any(each.text(), {"temp", "tmp"}) && each.kind() != Kind::string;
      }))
    return false;
  return std::find(std::begin(kNames), std::end(kNames), call.call->name) != std::end(kNames) ||
         call.call->path == "gdown.download" || call.call->path == "wget.download";
}

// shutil.move(unpacked, folder) in a download: of a directory the second one lands in the first.
bool puts_in_place(const Program& program, const CallRef& call) {
  const Ref source = call.argument(0, "src");
  return call.call->path == "shutil.move" && source && source.kind() == Kind::identifier &&
         !is_of_one_rank(program, call.argument(1, "dst"));
}

bool has_flag(const Program& program, const CallRef& call, std::string_view name) {
  const Ref flag = call.keyword(name);
  return flag && program.is_literal_true(flag);
}

}  // namespace

void tell_trackers(Left& left) {
  std::vector<Ref> places;
  for (const Module* module : left.program.modules())
    for (const Call& made : module->calls()) {
      const CallRef call{module, &made};
      if (is_tracker(call) && left.runs_on_every_rank(call.ref())) places.push_back(call.ref());
    }
  if (places.empty())  // runs that begin with the first figure
    for (const std::string_view name : {"log_metric", "log_metrics", "log_param", "log_params"})
      for (const CallRef& call : left.program.calls_named(name))
        if (places.empty() && call.call->path.starts_with("mlflow.") &&
            left.runs_on_every_rank(call.ref()))
          places.push_back(call.ref());
  left.tell(
      Harm::waste, places,
      "every rank opens a run or a log of its own: the figures stand there N times over. Make "
      "it on rank 0 alone (dist.get_rank() == 0), and call it under the same test.");
}

namespace {

// open(path), np.load(path) and path.open("rb").
Ref path_read(const Program& program, const CallRef& call) {
  const Ref object = call.receiver();
  if (const Ref opened = path_opened_to_read(program, call)) return opened;
  if (call.call->name != "open" || !object || !pitfalls::is_path(program, object))
    return pitfalls::read_path(program, call);
  return path_written(program, call) ? Ref{} : object;
}

// Where every rank reads what it has written: preprocess(), and a line below it open(path, "rb").
Ref read_behind(const Left& left, const CallRef& write, Ref path) {
  const Program& program = left.program;
  for (const Module* module : program.modules())
    for (const Call& made : module->calls()) {
      const CallRef read{module, &made};
      const Ref given = path_read(program, read);
      if (given && read.call != write.call && is_same_path(program, path, given) &&
          left.runs_on_every_rank(read.ref()) &&
          !pitfalls::facts::exclusive(write.ref(), read.ref()) &&
          program.runs_before(write.ref(), read.ref()))
        return read.ref();
    }
  return {};
}

}  // namespace

void tell_written_files(Left& left) {
  std::vector<Ref> places;
  const Program& program = left.program;
  for (const Module* module : program.modules())
    for (const Call& made : module->calls()) {
      const CallRef call{module, &made};
      const Ref path = path_written(program, call);
      if (!path || !left.runs_on_every_rank(call.ref()) || is_of_one_rank(program, path) ||
          is_stream(program, path) || is_in_download(program, path) ||
          is_of_samples(program, call.ref()))
        continue;
      if (left.is_found(call.ref(), "DDP026") || left.is_found(call.ref(), "DDP039")) continue;
      if (const Ref read = read_behind(left, call, path))
        left.tell(Harm::may_stop, {call.ref()},
                  "every rank writes this file, and all of them read it at " + place_of(read) +
                      ": they may read half of it. Write it under `if dist.get_rank() == 0:`, "
                      "with dist.barrier() behind it for all ranks.");
      else
        places.push_back(call.ref());
    }
  left.tell(Harm::figures, places,
            "every rank writes this file: ranks overwrite each other, or each line stands there N "
            "times. Write it under `if dist.get_rank() == 0:`.");
}

void tell_downloads(Left& left) {
  std::vector<Ref> places;
  for (const Module* module : left.program.modules()) {
    if (!module->tree().holds("download") && !module->tree().holds("urlretrieve")) continue;
    for (const Call& made : module->calls()) {
      const CallRef call{module, &made};
      const bool fetches =
          has_flag(left.program, call, "download") ||
          (is_fetch(call) && !left.program.callee(call)) ||
          (is_in_download(left.program, call.ref()) &&
           (path_written(left.program, call) || puts_in_place(left.program, call)));
      if (fetches && !left.is_found(call.ref(), "DDP026") && left.runs_on_every_rank(call.ref()) &&
          !pitfalls::facts::rank_goes_first(left.program, call.ref()) &&
          !pitfalls::facts::under_lock(left.program, call.ref()))
        places.push_back(call.ref());
    }
  }
  left.tell(Harm::stops, places,
            "where the data is not there yet, every rank downloads and unpacks it into the same "
            "place, and may read half of a file. Download it once before the launch, or on rank 0 "
            "with dist.barrier() behind it.");
}

}  // namespace bench::diagnose
