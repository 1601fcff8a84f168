#include "scenarios/pitfalls/files/fetches.hpp"

#include "scenarios/pitfalls/files/path_of_call.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

namespace {

constexpr PathOfCall kFetchers[] = {
    {"urllib.request.urlretrieve", 1, "filename"},
    {"urllib.urlretrieve", 1, "filename"},
    {"wget.download", 1, "out"},
    {"gdown.download", 1, "output"},
    {"torch.hub.download_url_to_file", 1, "dst"},
    {"torchvision.datasets.utils.download_url", 1, "root"},
    {"torchvision.datasets.utils.download_and_extract_archive", 1, "download_root"},
    {"torchvision.datasets.utils.extract_archive", 1, "to_path"},
    {"shutil.unpack_archive", 1, "extract_dir"},
    {"beir.util.download_and_unzip", 1, "out_dir"},
    {"huggingface_hub.Repository", 0, "local_dir"},  // where it clones
};

// Programs that fetch a file, or unpack one.
constexpr std::string_view kPrograms[] = {"wget", "curl",  "gdown", "kaggle", "aria2c",
                                          "axel", "unzip", "tar",   "7z",     "unrar"};

// tar -tf data.tar, tar czf data.tar runs, unzip -l data.zip, ["tar", "-tf", ...]
bool lists_or_packs(std::string_view command) {
  return holds_any(command, {"tar -t", "tar t", "tar c", "tar -c", "\"-t", "\"-c", "'-t", "'-c",
                             "unzip -l", "\"-l\"", "'-l'", "-Z1"});
}

// os.system("wget -O data.zip https://..."), subprocess.run(["curl", ...])
bool runs_fetcher(const CallRef& call) {
  const std::string_view path = call.call->path;
  if (path != "os.system" && !path.starts_with("subprocess.")) return false;
  const std::string_view command = call.positional(0).text();
  if (holds_any(command, {"git clone"})) return true;
  if (lists_or_packs(command)) return false;
  std::size_t begin = command.find_first_not_of("[ ");
  if (begin != std::string_view::npos && (command[begin] == 'f' || command[begin] == 'r') &&
      begin + 1 < command.size() && (command[begin + 1] == '"' || command[begin + 1] == '\''))
    ++begin;
  begin = begin == std::string_view::npos ? begin : command.find_first_not_of("'\" ", begin);
  if (begin == std::string_view::npos) return false;
  const std::string_view program = command.substr(begin);
  const std::string_view name = program.substr(0, program.find_first_of(" '\","));
  return std::find(std::begin(kPrograms), std::end(kPrograms), name) != std::end(kPrograms) ||
         holds_any(command, {"wget ", "curl "});
}

// archive.extractall(path) of zipfile.ZipFile(...) and tarfile.open(...)
bool unpacks(const Program& program, const CallRef& call) {
  if (call.call->name != "extractall" || !call.receiver()) return false;
  const auto& sources = program.sources(call.receiver());
  return std::any_of(sources.begin(), sources.end(), [](const diagnose::Source& source) {
    return holds_any(source.ref.text(), {"ZipFile(", "tarfile.open(", "TarFile("});
  });
}

// What a part of an answer is a part of: answer.content, answer.read(), answer.raw, chunk of
// `for chunk in answer.iter_content(8192)`, and of chunk = answer.read(8192).
Ref whole_of(const Program& program, Ref part) {
  if (part.kind() == diagnose::Kind::attribute) {
    const std::string_view name = part.child(diagnose::Field::attribute).text();
    const bool is_body = name == "content" || name == "text" || name == "raw";
    return is_body ? part.child(diagnose::Field::object) : Ref{};
  }
  if (const CallRef read = program.as_call(part); read && read.call->name == "read")
    return read.receiver();
  if (part.kind() != diagnose::Kind::identifier) return part;
  for (const diagnose::Source& source : program.sources(part)) {
    const CallRef read = program.as_call(source.ref);
    if (read && read.call->name == "read" && read.receiver()) return read.receiver();
    if (source.how != diagnose::Source::How::loop_item) continue;
    const CallRef chunks = program.as_call(program.strip_iterable(source.ref));
    if (chunks && (chunks.call->name == "iter_content" || chunks.call->name == "iter_lines"))
      return chunks.receiver();
  }
  return part;
}

// requests.get(url), urlopen(url), and session.get(url) of a requests.Session().
bool asks_a_server(const Program& program, const CallRef& call) {
  if (!call) return false;
  if (call.call->path == "requests.get" || call.call->path == "urllib.request.urlopen") return true;
  if (call.call->name != "get" || !call.receiver()) return false;
  const CallRef session = program.made_by(call.receiver());
  return session &&
         (session.call->path == "requests.Session" || session.call->path == "requests.session");
}

// file.write(answer.content) after answer = requests.get(url), and shutil.copyfileobj(answer.raw,
// file): the path that the file was opened with, as in `with open(path, "wb") as file`.
Ref path_of_answer(const Program& program, const CallRef& call) {
  const bool copies = call.call->path == "shutil.copyfileobj";
  const Ref file = copies ? call.positional(1) : call.receiver();
  const Ref answer = call.positional(0);
  if ((!copies && call.call->name != "write") || !file || !answer) return {};
  if (!program.mentions("requests") && !program.mentions("urlopen")) return {};
  if (!asks_a_server(program, program.made_by(whole_of(program, answer)))) return {};
  const CallRef opened = program.made_by(file);
  if (!opened || opened.call->name != "open") return {};
  // A log that grows, and a file that only the first to come makes.
  const Ref mode = opened.argument(1, "mode");
  const bool is_shared = facts::contains(mode.text(), "a") || facts::contains(mode.text(), "x");
  return is_shared ? Ref{} : opened.positional(0);
}

}  // namespace

std::vector<Fetch> fetches_of(const Program& program) {
  std::vector<Fetch> out;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef call{module, &made};
      const auto known =
          std::find_if(std::begin(kFetchers), std::end(kFetchers),
                       [&](const PathOfCall& each) { return each.name == made.path; });
      if (made.path == "huggingface_hub.Repository" && !call.argument(1, "clone_from")) continue;
      if (known != std::end(kFetchers))
        out.push_back({call, call.argument(known->index, known->keyword),
                       known->name == "torch.hub.download_url_to_file"});
      else if (runs_fetcher(call))
        out.push_back({call, call.positional(0)});
      else if (const Ref answered = path_of_answer(program, call))
        out.push_back({call, answered});
      else if (unpacks(program, call))
        out.push_back({call, call.argument(0, "path")});
    }
  return out;
}

}  // namespace bench::pitfalls
