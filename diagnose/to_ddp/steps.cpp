#include "diagnose/driver/fix.hpp"
#include "diagnose/to_ddp/brackets.hpp"
#include "diagnose/to_ddp/entry.hpp"
#include "diagnose/to_ddp/file_names.hpp"
#include "diagnose/to_ddp/gpu_uses.hpp"
#include "diagnose/to_ddp/idle_wraps.hpp"
#include "diagnose/to_ddp/loader_loops.hpp"
#include "diagnose/to_ddp/loader_shares.hpp"
#include "diagnose/to_ddp/parts.hpp"
#include "diagnose/to_ddp/rank_guard.hpp"
#include "diagnose/to_ddp/rewrite.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

namespace edit = pitfalls;

constexpr std::string_view kConvert = "torch.nn.SyncBatchNorm.convert_sync_batchnorm";

class Rewriter {
 public:
  Rewriter(const ReachedCode& reached, const Parts& parts, const StepOptions& options)
      : reached_(reached),
        program_(reached.program()),
        options_(options),
        parts_(parts),
        names_(program_) {}

  std::vector<RewriteStep> rewrite() {
    if (!join_process_group()) return {};  // ranks that never meet train models of their own
    leave_gpus_to_the_launcher();
    place_on_local_device();
    wrap_in_ddp();
    synchronise_batch_norm();
    wrap_wherever_there_are_ranks();
    leave_others_unwrapped();
    keep_idle_wrappers();
    know_the_wrapper();
    shard_data();
    count_epochs_of_data();
    save_on_first_rank();
    leave_process_group();
    if (!learn_rank()) return {};
    add_imports();
    return std::move(steps_);
  }

 private:
  // False where there is nothing to do.
  bool add(std::string title, std::string why, const Finding& made, const std::vector<Ref>& where) {
    if (!made.fix || made.fix->edits.empty()) return false;
    RewriteStep step{std::move(title), std::move(why), {}, made.fix->edits};
    for (const Ref& at : where)
      step.lines.push_back({at.module->path(), at.module->tree().line_of(at.node)});
    steps_.push_back(std::move(step));
    return true;
  }

  const Module& root() const { return program_.root(); }

  // First of the steps, and made last: by then it is known what the files need.
  void add_imports() {
    Finding made;
    std::vector<Ref> where;
    for (const Module* file : names_.importers()) {
      const Ref place = first_import(*file);
      edit::insert_before(place, names_.imports_of(*file), "", made);
      where.push_back(place);
    }
    if (add("Import what DDP needs", "The process group, the wrapper and the sampler.", made,
            where))
      std::rotate(steps_.begin(), steps_.end() - 1, steps_.end());
  }

  // Below the imports that stand above its first use, where every function of the file sees it;
  // other files may import this one in a process that no launcher started. Made last, as it is
  // known by then where it is used.
  bool learn_rank() {
    names_.need_os(root());
    std::uint32_t first_use = static_cast<std::uint32_t>(root().tree().source().size());
    for (const RewriteStep& step : steps_)
      for (const Edit& each : step.edits)
        if (each.file == root().path()) first_use = std::min(first_use, each.begin);
    const std::string line = names_.local_rank() + " = int(os.environ.get(\"LOCAL_RANK\", 0))";
    Finding made;
    const Ref last = last_import_above(root(), first_use);
    const Ref place = last ? last : first_import(root());
    if (last) edit::insert_after(last, "\n" + line, "", made);
    // import os; import torch: above the next statement, which no import has to be.
    const auto& tree = root().tree();
    for (NodeId at = last ? tree[last.node].next_sibling : place.node; !made.fix && at != kNoNode;
         at = tree[at].next_sibling)
      edit::insert_before({&root(), at}, line, "", made);
    if (!add("Learn which rank this is",
             "torchrun starts one process for each GPU and numbers them.", made, {place}))
      return false;
    std::rotate(steps_.begin(), steps_.end() - 1, steps_.end());
    return true;
  }

  std::vector<Ref> needs_of_group() const {
    std::vector<Ref> out;
    for (const Wrap* wrap : parts_.wraps) out.push_back(wrap->call.ref());
    for (const CallRef& loader : parts_.loaders) out.push_back(loader.ref());
    for (const CallRef& save : parts_.saves) out.push_back(save.ref());
    for (const GpuCondition& each : parts_.conditions) out.push_back(each.condition);
    return out;
  }

  // What asks for the group, or for the GPU of the rank.
  std::vector<Ref> needs() const {
    std::vector<Ref> out = needs_of_group();
    for (const Wrap* wrap : parts_.wraps)
      for (const CallRef& place : pitfalls::facts::placements(program_, *wrap))
        out.push_back(place.ref());
    for (const FixedDevice& device : parts_.devices)
      if (device.needs_gpu) out.push_back(device.where);
    for (const CallRef& use : gpu_uses(reached_)) out.push_back(use.ref());
    return out;
  }

  // Also where another script imports the file.
  bool runs_at_import(Ref statement) const {
    return root().has_main_guard() && !program_.enclosing_function(statement) &&
           !root().under_main_guard(statement.node);
  }

  // MEAN = torch.ones(3).to(device), above main(): whoever imports it has no ranks, and must not
  // join. False where the group itself is needed there.
  bool take_gpu_at_import() {
    const Ref early = entry_.first;
    if (!runs_at_import(early)) return false;
    const DdpEntry later = ddp_entry(program_, needs_of_group());
    if (!later.first || runs_at_import(later.first)) return false;
    entry_ = later;
    Finding made;
    edit::insert_before(
        early,
        "if \"LOCAL_RANK\" in os.environ:\n    torch.cuda.set_device(" + names_.local_rank() + ")",
        "", made);
    return add("Take the GPU of the rank",
               "This puts tensors on a GPU where the file is read, also by scripts that have no "
               "ranks.",
               made, {early});
  }

  bool join_process_group() {
    entry_ = ddp_entry(program_, needs());
    if (!entry_.first) return false;
    names_.need_torch(root());
    const std::string join = names_.dist(root()) + ".init_process_group(\"nccl\")";
    const bool has_gpu = take_gpu_at_import();
    Finding made;
    edit::insert_before(
        entry_.first,
        has_gpu ? join : "torch.cuda.set_device(" + names_.local_rank() + ")\n" + join, "", made);
    return add("Join the process group",
               "Every process takes its own GPU, and the ranks meet before anything else is made.",
               made, {entry_.first});
  }

  // The launcher starts a process for each GPU that it sees; in a process that hides some of them
  // the index of the rank is none.
  void leave_gpus_to_the_launcher() {
    Finding made;
    for (const Ref& choice : parts_.gpu_choices) {
      const Ref variables = choice.child(Field::left).child(Field::value);
      if (choice.module == &root() || !variables)
        remove(choice, made);
      else  // other scripts import the file, and have no launcher
        edit::guard_statement(choice, "\"LOCAL_RANK\" not in " + std::string(variables.text()), "",
                              made);
    }
    add("Leave the choice of GPUs to the launcher",
        "A rank that hides GPUs from itself has none of its number.", made, parts_.gpu_choices);
  }

  std::string on_rank(const FixedDevice& device) {
    if (device.where.module == &root()) return device.for_rank(names_.local_rank());
    names_.need_torch(*device.where.module);
    if (device.is_first()) return device.for_current();
    // What the author chose stays for scripts that import the file and have no launcher.
    names_.need_os(*device.where.module);
    return in_brackets(device.where, device.for_current() +
                                         " if \"LOCAL_RANK\" in os.environ else " +
                                         std::string(device.where.text()));
  }

  void place_on_local_device() {
    Finding made;
    std::vector<Ref> where;
    for (const FixedDevice& device : parts_.devices) {
      const auto holds = [&](const Wrap* wrap) {
        return wrap->call.module == device.where.module &&
               device.where.module->tree().contains(wrap->call.call->node, device.where.node);
      };
      // Those in a wrapper are written anew with it.
      if (std::any_of(parts_.wraps.begin(), parts_.wraps.end(), holds)) continue;
      edit::replace(device.where, on_rank(device), "", made);
      where.push_back(device.where);
    }
    add("Use the GPU of this rank", "Every process owns one device.", made, where);
  }

  // .cuda() takes the GPU that was set, and a device that is written anew is that of the rank.
  bool is_on_rank(const CallRef& place) const {
    const Ref device = place.argument(0, "device");
    if (!device) return place.call->name == "cuda";
    const auto& sources = program_.sources(device);
    return !sources.empty() &&
           std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
             return std::any_of(parts_.devices.begin(), parts_.devices.end(),
                                [&](const FixedDevice& each) { return each.where == source.ref; });
           });
  }

  // model.cuda() above the wrapper in the same function, or in what is wrapped itself; not
  // DataParallel(model).cuda(), which comes too late for DDP.
  bool is_placed_above(const Wrap& wrap) const {
    const auto placements = pitfalls::facts::placements(program_, wrap);
    const NodeId made = wrap.call.call->node;
    return std::any_of(placements.begin(), placements.end(), [&](const CallRef& place) {
      const NodeId at = place.call->node;
      const auto& tree = place.module->tree();
      if (place.module != wrap.call.module || !is_on_rank(place) || tree.contains(at, made))
        return false;
      return tree.contains(made, at) || (at < made && program_.guards(place.ref()).empty() &&
                                         program_.enclosing_function(place.ref()) ==
                                             program_.enclosing_function(wrap.call.ref()));
    });
  }

  // What a node says, with the GPU of the rank in place of one that all would take.
  std::string with_gpu_of_rank(Ref node) {
    std::vector<Edit> edits;
    const auto& tree = node.module->tree();
    const std::uint32_t begin = tree[node.node].begin;
    for (const FixedDevice& device : parts_.devices)
      if (device.where.module == node.module && tree.contains(node.node, device.where.node)) {
        const auto& span = tree[device.where.node];
        edits.push_back({"", span.begin - begin, span.end - begin, on_rank(device)});
      }
    return apply_edits(std::string(node.text()), edits);
  }

  // In other files DataParallel stays for scripts that import them and have no group.
  std::string wrapped_in_ddp(const Wrap& wrap) {
    const Module& file = *wrap.call.module;
    const std::string gpu = names_.gpu(file);
    std::string module = with_gpu_of_rank(wrap.module);
    if (!is_placed_above(wrap)) {
      const Kind kind = wrap.module.kind();
      const bool is_joined = kind == Kind::conditional || kind == Kind::boolean;
      module = (is_joined ? "(" + module + ")" : module) + ".to(" + gpu + ")";
    }
    if (synchronises(program_, wrap, parts_.old_sync)) {
      names_.need_torch(file);
      module = std::string(kConvert) + "(" + module + ")";
    }
    std::string out = names_.wrapper(file) + "(" + module;
    out += ", device_ids=[" + gpu + "]";
    if (options_.find_unused_parameters) out += ", find_unused_parameters=True";
    if (options_.keep_buffers) out += ", broadcast_buffers=False";
    out += ")";
    const auto& frozen = parts_.maybe_frozen;  // DDP refuses what has no gradients in this run
    if (std::find(frozen.begin(), frozen.end(), &wrap) != frozen.end()) {
      out += " if any(weight.requires_grad for weight in " + std::string(wrap.module.text()) +
             ".parameters()) else " + on_one_gpu(wrap);
      if (&file == &root()) return in_brackets(wrap.call.ref(), out);
      out = "(" + out + ")";
    }
    if (&file == &root()) return out;
    return in_brackets(wrap.call.ref(), out + " if " + names_.dist(file) +
                                            ".is_initialized() else " +
                                            std::string(wrap.call.ref().text()));
  }

  void wrap_in_ddp() {
    Finding made;
    std::vector<Ref> where;
    for (const Wrap* wrap : parts_.wraps) {
      edit::replace(wrap->call.ref(), wrapped_in_ddp(*wrap), "", made);
      where.push_back(wrap->call.ref());
    }
    std::string why = "Gradients are reduced while backward still runs";
    if (options_.find_unused_parameters)
      why += "; some parameters get none, so DDP has to look for them";
    if (options_.keep_buffers)
      why += "; a second pass must not copy buffers into place before the backward pass";
    add("Wrap in DistributedDataParallel", why + ".", made, where);
  }

  // The callback of the old layers runs on replicas, and takes a DataParallel alone.
  void synchronise_batch_norm() {
    Finding made;
    std::vector<Ref> where;
    for (const CallRef& call : parts_.old_sync.conversions) {
      const Module& file = *call.module;
      names_.need_torch(file);
      if (&file == &root())
        edit::replace({&file, call.call->function}, std::string(kConvert), "", made);
      else
        edit::replace(call.ref(),
                      in_brackets(call.ref(), std::string(kConvert) + "(" +
                                                  std::string(call.positional(0).text()) + ") if " +
                                                  names_.dist(file) + ".is_initialized() else " +
                                                  std::string(call.ref().text())),
                      "", made);
      where.push_back(call.ref());
    }
    for (const CallRef& call : parts_.old_sync.callbacks) {
      if (call.module == &root())
        remove(call.ref(), made);
      else
        edit::guard_statement(call.ref(), "not " + names_.dist(*call.module) + ".is_initialized()",
                              "", made);
      where.push_back(call.ref());
    }
    add("Synchronise BatchNorm between ranks",
        "Its layers were synchronised between the replicas of DataParallel, and DDP makes none.",
        made, where);
  }

  // A process of several has one GPU, so that a test of their number would leave the wrapper out.
  void wrap_wherever_there_are_ranks() {
    Finding made;
    std::vector<Ref> where;
    for (const GpuCondition& each : parts_.conditions) {
      const Module& file = *each.condition.module;
      const std::string joined = names_.dist(file) + ".is_initialized()";
      std::string text = each.holds ? joined : "not " + joined;
      if (&file != &root())
        text = in_brackets(each.condition, text + (each.holds ? " or " : " and ") +
                                               std::string(each.condition.text()));
      edit::replace(each.condition, text, "", made);
      where.push_back(each.condition);
    }
    add("Wrap wherever there are ranks",
        "The condition asks about the GPUs of one process, which has one now.", made, where);
  }

  // criterion = DataParallel(criterion): all of the statement goes.
  bool goes(const Wrap& wrap) const {
    return !is_used_as_wrapper(program_, wrap) &&
           program_.assigned_name(wrap.call.ref()) == wrap.module.text();
  }

  // One of the statements that go.
  void remove(Ref node, Finding& made) const {
    std::vector<Ref> gone = parts_.gpu_choices;
    for (const Wrap* wrap : parts_.empty_wraps)
      if (goes(*wrap)) gone.push_back(wrap->call.ref());
    edit::remove_statement(node, gone, "", made);
  }

  void leave_others_unwrapped() {
    Finding made;
    std::vector<Ref> where;
    for (const Wrap* wrap : parts_.empty_wraps) {
      if (is_used_as_wrapper(program_, *wrap))
        edit::replace(wrap->call.ref(), on_one_gpu(*wrap), "", made);
      else if (goes(*wrap))
        remove(wrap->call.ref(), made);
      else
        edit::replace(wrap->call.ref(), with_gpu_of_rank(wrap->module), "", made);
      where.push_back(wrap->call.ref());
    }
    add("Leave modules without gradients unwrapped",
        "There is nothing to reduce, and DDP refuses them.", made, where);
  }

  // DataParallel over one GPU does nothing but keep `.module` and the keys of checkpoints.
  std::string on_one_gpu(const Wrap& wrap) {
    const Module& file = *wrap.call.module;
    const Ref ids = wrap.call.argument(1, "device_ids");
    std::string devices = "[" + names_.gpu(file) + "]";
    if (&file != &root())
      devices += " if " + names_.dist(file) + ".is_initialized() else " +
                 (ids ? std::string(ids.text()) : "None");
    return std::string(Ref{&file, wrap.call.call->function}.text()) + "(" +
           with_gpu_of_rank(wrap.module) + ", device_ids=" + devices + ")";
  }

  void keep_idle_wrappers() {
    Finding made;
    std::vector<Ref> where;
    for (const Wrap* wrap : parts_.idle_wraps) {
      edit::replace(wrap->call.ref(), on_one_gpu(*wrap), "", made);
      where.push_back(wrap->call.ref());
    }
    add("Keep what nothing trains on the GPU of the rank",
        "There are no gradients to reduce; over one GPU DataParallel only keeps `.module` and the "
        "keys of checkpoints.",
        made, where);
  }

  void know_the_wrapper() {
    Finding made;
    for (const Ref& type : parts_.type_tests)
      edit::replace(type,
                    "(" + std::string(type.text()) + ", " + names_.wrapper(*type.module) + ")", "",
                    made);
    add("Know the new wrapper", "The test asks whether the model stands behind `.module`.", made,
        parts_.type_tests);
  }

  void shard_data() {
    Finding made;
    std::vector<Ref> where;
    for (const CallRef& loader : parts_.loaders) {
      if (share_out(program_, loader, names_, made)) where.push_back(loader.ref());
    }
    add("Give each rank its share of the data",
        "The sampler shuffles and splits; DataParallel's batch size was the total of all GPUs.",
        made, where);
  }

  // Of loops whose batches come from a loader that was shared out.
  void count_epochs_of_data() {
    Finding made;
    std::vector<Ref> where;
    for (const TrainingLoop& loop : program_.training_loops()) {
      const auto is_shared = [&](const CallRef& each) {
        return std::any_of(parts_.loaders.begin(), parts_.loaders.end(),
                           [&](const CallRef& shared) { return shared.ref() == each.ref(); });
      };
      const auto loaders = pitfalls::loaders_of(program_, loop.iterable);
      const auto held = loaders.empty() && loop.epochs
                            ? loaders_within(program_, program_.strip_iterable(loop.iterable))
                            : std::vector<CallRef>{};
      const std::size_t before = made.fix ? made.fix->edits.size() : 0;
      if (std::find(where.begin(), where.end(), loop.epochs) == where.end()) {
        if (std::any_of(loaders.begin(), loaders.end(), is_shared))
          count_epochs(program_, loop, made);
        if (held.size() == 1 && is_shared(held.front()))
          set_epochs_of_holder(program_, loop, held.front(), made);
      }
      if (made.fix && made.fix->edits.size() > before) where.push_back(loop.epochs);
    }
    add("Count the epochs of the data", "The sampler shuffles by the number of the epoch.", made,
        where);
  }

  void save_on_first_rank() {
    Finding made;
    std::vector<Ref> where;
    for (const CallRef& save : parts_.saves) {
      const std::string dist = names_.dist(root());
      const std::string is_first = dist + ".get_rank() == 0";
      if (put_under_with_copy(program_, save, is_first, made)) {
        where.push_back(save.ref());
        continue;
      }
      if (!put_under(save.ref(), is_first, made)) continue;
      if (is_used_below(program_, save))
        edit::insert_after(save.ref(), dist + ".barrier()", "", made);
      where.push_back(save.ref());
    }
    add("Save on rank 0", "All ranks hold the same weights; one writes the file.", made, where);
  }

  void leave_process_group() {
    if (!entry_.last) return;
    Finding made;
    const std::string dist = names_.dist(root());
    std::string line = dist + ".destroy_process_group()";
    const auto own = program_.calls(Api::destroy_process_group);
    if (may_return_above(program_, entry_) ||
        std::any_of(own.begin(), own.end(),
                    [&](const CallRef& call) { return reached_.comes_by(call.ref()); }))
      line = "if " + dist + ".is_initialized():\n    " + line;  // the script may have left it
    edit::insert_after(entry_.last, line, "", made);
    add("Leave the process group", "Communicators are torn down in order.", made, {entry_.last});
  }

  const ReachedCode& reached_;
  const Program& program_;
  const StepOptions options_;
  const Parts& parts_;
  FileNames names_;
  DdpEntry entry_;
  std::vector<RewriteStep> steps_;
};

}  // namespace

std::vector<RewriteStep> steps_to_ddp(const ReachedCode& reached, const Parts& parts,
                                      const StepOptions& options) {
  return Rewriter(reached, parts, options).rewrite();
}

}  // namespace bench::diagnose
