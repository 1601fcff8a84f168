#include "diagnose/to_ddp/output_paths.hpp"

#include "scenarios/pitfalls/files/file_calls.hpp"
#include "scenarios/pitfalls/files/own_disks.hpp"
#include "scenarios/pitfalls/files/path_of_call.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/path_form.hpp"
#include "scenarios/pitfalls/program/paths.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace bench::diagnose {
namespace {

using pitfalls::holds_any;
using pitfalls::PathOfCall;
using pitfalls::facts::contains;
using pitfalls::facts::lowered;

// Functions that nothing but the writing of a file is called by.
constexpr PathOfCall kWriters[] = {
    {"savefig", 0, "fname"},
    {"imwrite", 0, "filename"},
    {"imsave", 0, "fname"},
    {"mimsave", 0, "uri"},
    {"save_image", 1, "fp"},
    {"mimwrite", 0, "uri"},
    {"FileHandler", 0, "filename"},
    {"RotatingFileHandler", 0, "filename"},
    {"TimedRotatingFileHandler", 0, "filename"},
    {"write_video", 0, "filename"},
    {"to_excel", 0, "excel_writer"},
    {"savemat", 0, "file_name"},
    {"WriteImage", 1, "fileName"},
    {"VideoWriter", 0, "filename"},
    {"write_html", 0, "file"},
    {"ExcelWriter", 0, "path"},
};

// By the whole path: the names alone say less.
constexpr PathOfCall kWritersByPath[] = {
    {"scipy.io.wavfile.write", 0, "filename"},
    {"soundfile.write", 0, "file"},
    {"torchaudio.save", 0, "uri"},
    {"nibabel.save", 1, "filename"},
    {"omegaconf.OmegaConf.save", 1, "f"},
    {"imageio.get_writer", 0, "uri"},
    {"loguru.logger.add", 0, "sink"},
};

// What opens a file in a mode, which is its second argument.
constexpr std::string_view kOpeners[] = {"codecs.open",     "io.open",         "gzip.open",
                                         "bz2.open",        "lzma.open",       "h5py.File",
                                         "tarfile.open",    "tarfile.TarFile", "zipfile.ZipFile",
                                         "pandas.HDFStore", "tables.open_file"};

constexpr std::string_view kQuestions[] = {"exists", "isdir", "isfile", "is_dir", "is_file"};

bool is_opener(const CallRef& call) {
  return std::find(std::begin(kOpeners), std::end(kOpeners), call.call->path) != std::end(kOpeners);
}

Ref opened_for_writing(const Program& program, const CallRef& call) {
  const bool is_known = is_opener(call);
  const bool is_of_path = !is_known && call.call->name == "open" && call.receiver() &&
                          pitfalls::is_path(program, call.receiver());
  if (!is_known && !is_of_path) return {};
  const std::string mode = program.string(call.argument(is_of_path ? 0 : 1, "mode")).value_or("r");
  if (!holds_any(mode, {"w", "a", "x"})) return {};
  return is_of_path ? call.receiver() : call.positional(0);
}

// Image.fromarray(array).save(path), and image.save(path) of what was made so.
bool is_image(const Program& program, Ref object) {
  const CallRef made = program.made_by(object);
  return made &&
         (made.call->path.starts_with("PIL.Image.") || contains(made.call->path, "ToPILImage") ||
          contains(made.call->path, "to_pil_image"));
}

// "%s_label.png" % name, root + "/" + name + ".xlsx": whatever object has the method, the file is
// no checkpoint.
bool is_file_of_figures(const Program& program, Ref path) {
  constexpr std::string_view kEndings[] = {".png",  ".jpg",  ".jpeg", ".bmp", ".gif",  ".tif",
                                           ".tiff", ".webp", ".xlsx", ".xls", ".docx", ".pdf"};
  const auto ends_so = [&](std::string_view text) {
    while (!text.empty() && (text.back() == '"' || text.back() == '\'')) text.remove_suffix(1);
    return std::any_of(std::begin(kEndings), std::end(kEndings),
                       [&](std::string_view ending) { return text.ends_with(ending); });
  };
  if (path.kind() == Kind::binary && path.module->tree()[path.node].op == Op::modulo)
    path = path.child(Field::left);
  return ends_so(path.text()) || ends_so(pitfalls::path_form(program, path));
}

// image.save(path), workbook.save(filename=path)
Ref figures_saved(const Program& program, const CallRef& call) {
  if (call.call->name != "save" || !call.receiver() || program.callee(call)) return {};
  for (const char* keyword : {"fp", "filename"})
    if (const Ref path = call.argument(0, keyword);
        path && (is_image(program, call.receiver()) || is_file_of_figures(program, path)))
      return path;
  return {};
}

bool is_path_method(std::string_view name) {
  return name == "write_text" || name == "write_bytes" || name == "touch";
}

// Names that are drawn to keep runs apart.
bool is_draw(const CallRef& call) {
  if (!call) return false;
  const std::string_view path = call.call->path;
  return path.starts_with("uuid.uuid") || path.starts_with("random.") ||
         path.starts_with("numpy.random.") || path.starts_with("secrets.") ||
         path.starts_with("shortuuid.") || contains(path, "generate_id");
}

// What a path is made of, from its names to what they are given.
class Draws {
 public:
  explicit Draws(const Program& program) : program_(program) {}

  std::vector<Ref> behind(Ref path) {
    add(path, 0);
    return std::move(out_);
  }

 private:
  void add(Ref part, int depth) {
    constexpr int kNames = 4;            // log_dir -> args.out -> name
    constexpr std::size_t kParts = 128;  // expressions of one path
    if (!part || depth > kNames || seen_.size() > kParts || !seen_.insert(part).second) return;
    const auto& tree = part.module->tree();
    for (NodeId id = part.node; id < tree[part.node].last; ++id) {
      const Ref at = part.with(id);
      if (is_draw(program_.as_call(at)) && pitfalls::is_drawn_by_each(program_, at))
        out_.push_back(at);
      if ((at.kind() != Kind::identifier && at.kind() != Kind::attribute) ||
          tree[id].field == Field::function || tree[id].field == Field::attribute)
        continue;
      if (at.kind() == Kind::attribute)
        for (const auto index : part.module->defs_of(at.child(Field::attribute).text(), true))
          add(part.with(part.module->defs()[index].value), depth + 1);
      for (const Source& source : program_.sources(at))
        if (source.how == Source::How::value && source.ref.kind() != Kind::class_definition &&
            source.ref.kind() != Kind::function)
          add(source.ref, depth + 1);
    }
  }

  const Program& program_;
  std::set<Ref> seen_;
  std::vector<Ref> out_;
};

}  // namespace

Ref path_written(const Program& program, const CallRef& call) {
  if (call.call->api == Api::torch_save) return {};
  const std::string_view name = call.call->name;
  for (const PathOfCall& each : kWriters)
    if (name == each.name) return call.argument(each.index, each.keyword);
  for (const PathOfCall& each : kWritersByPath)
    if (call.call->path == each.name) return call.argument(each.index, each.keyword);
  if (call.call->path == "logging.basicConfig") return call.keyword("filename");
  if (name == "save_pretrained") return {};
  if (const Ref saved = figures_saved(program, call)) return saved;
  if (is_path_method(name) && call.receiver() && pitfalls::is_path(program, call.receiver()))
    return call.receiver();
  if (const Ref opened = opened_for_writing(program, call)) return opened;
  return pitfalls::written_path(program, call);
}

Ref path_opened_to_read(const Program& program, const CallRef& call) {
  return is_opener(call) && !opened_for_writing(program, call) ? call.positional(0) : Ref{};
}

Ref place_made(const Program& program, const CallRef& call) {
  const std::string_view name = call.call->name;
  if (name == "makedirs" || name == "mkdir")
    return call.positional(0) ? call.positional(0) : call.receiver();
  if (name == "SummaryWriter") return call.argument(0, "log_dir");
  if (call.call->api == Api::torch_save) return call.argument(1, "f");
  return path_written(program, call);
}

bool is_of_one_rank(const Program& program, Ref path) {
  return program.comes_from_rank(path) || is_private(program, path) ||
         holds_any(lowered(path.text()), {"devnull", "tempfile", "/tmp/", "getpid"}) ||
         (pitfalls::is_drawn_by_each(program, path) && draws_behind(program, path).empty());
}

bool is_stream(const Program& program, Ref path) {
  if (holds_any(path.text(), {"stdout", "stderr"})) return true;
  const auto& sources = program.sources(path);
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef made = program.as_call(source.ref);
    return made && (made.call->name == "BytesIO" || made.call->name == "StringIO");
  });
}

bool is_private(const Program& program, Ref path) {
  const auto of_temporary = [](const CallRef& made) {
    return made && made.call->path.starts_with("tempfile.");
  };
  if (is_stream(program, path)) return true;
  const auto behind = pitfalls::facts::calls_behind(program, path);
  if (std::any_of(behind.begin(), behind.end(),
                  [&](Ref each) { return of_temporary(program.as_call(each)); }))
    return true;
  // file.name, of `with tempfile.NamedTemporaryFile() as file`
  const auto& sources = program.sources(path);
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    return source.ref.kind() == Kind::attribute &&
           of_temporary(program.made_by(source.ref.child(Field::object)));
  });
}

bool asks_whether_there(const CallRef& call) {
  return std::find(std::begin(kQuestions), std::end(kQuestions), call.call->name) !=
         std::end(kQuestions);
}

bool asks_whether_there(std::string_view text) {
  return std::any_of(std::begin(kQuestions), std::end(kQuestions), [&](std::string_view name) {
    return contains(text, std::string(name) + "(");
  });
}

bool is_in_download(const Program& program, Ref node) {
  const FunctionRef function = program.enclosing_function(node);
  return function && contains(lowered(function.function->name), "download");
}

bool is_of_samples(const Program& program, Ref node) {
  if (!pitfalls::facts::in_dataset(program, node)) return false;
  const auto is_made = [](FunctionRef function) {
    return function && function.function->name == "__init__";
  };
  const FunctionRef function = program.enclosing_function(node);
  if (!function || is_made(function)) return false;
  const auto& sites = program.call_sites(function);
  return sites.empty() || !std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
           return is_made(program.enclosing_function(site.ref()));
         });
}

bool is_same_path(const Program& program, Ref a, Ref b) {
  if (!a || !b) return false;
  if (program.same_variable(a, b)) return true;
  if (a.text() == b.text() && program.enclosing_function(a) == program.enclosing_function(b))
    return true;
  const std::string form = pitfalls::path_form(program, a);
  if (!form.empty() && form == pitfalls::path_form(program, b)) return true;
  const auto& ours = program.sources(a);
  const auto& theirs = program.sources(b);
  return std::any_of(ours.begin(), ours.end(), [&](const Source& source) {
    return source.how != Source::How::unknown &&
           std::any_of(theirs.begin(), theirs.end(), [&](const Source& other) {
             return other.ref == source.ref && other.element == source.element;
           });
  });
}

std::vector<Ref> draws_behind(const Program& program, Ref path) {
  return is_private(program, path) ? std::vector<Ref>{} : Draws(program).behind(path);
}

bool is_clock(const CallRef& call) {
  static constexpr std::string_view kNames[] = {"strftime", "now",       "asctime",  "ctime",
                                                "today",    "localtime", "isoformat"};
  return call &&
         (call.call->api == Api::time_now ||
          (std::find(std::begin(kNames), std::end(kNames), call.call->name) != std::end(kNames) &&
           (pitfalls::facts::contains(call.call->path, "time") ||
            pitfalls::facts::contains(call.call->path, "date"))));
}

namespace {

// The clock of another script, of which this one imports a function, names nothing here, unless
// that function makes the path of it.
bool is_of_this_run(const Program& program, Ref clock, Ref path) {
  const FunctionRef function = program.enclosing_function(clock);
  return clock.module == &program.root() || !clock.module->has_main_guard() ||
         (function && function == program.enclosing_function(path));
}

}  // namespace

std::vector<Ref> clocks_behind(const Program& program, Ref path) {
  std::vector<Ref> out;
  auto behind = pitfalls::facts::calls_behind(program, path);
  behind.push_back(path);
  for (const Ref& each : behind)
    if (is_clock(program.as_call(each)) && is_of_this_run(program, each, path)) out.push_back(each);
  return out;
}

}  // namespace bench::diagnose
