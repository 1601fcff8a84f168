#include "diagnose/driver/fix.hpp"
#include "diagnose/to_ddp/entry.hpp"
#include "diagnose/to_ddp/rank_devices.hpp"
#include "diagnose/to_ddp/rewrite.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

namespace edit = pitfalls;

class Rewriter {
 public:
  explicit Rewriter(const Program& program) : program_(program) {}

  std::vector<RewriteStep> rewrite() {
    for (const Wrap& wrap : program_.wraps())
      if (wrap.kind == Wrapper::data_parallel && wrap.call.module == &root() && wrap.module)
        wraps_.push_back(&wrap);
    if (wraps_.empty() || imports().empty()) return {};
    local_rank_ = is_taken("local_rank") ? "ddp_local_rank" : "local_rank";
    const bool has_dist = root().import_path("dist") == "torch.distributed";
    dist_ = !has_dist && is_taken("dist") ? "torch_dist" : "dist";
    for (const CallRef& loader : program_.calls(Api::data_loader))
      if (loader.module == &root() && is_to_be_sharded(loader)) loaders_.push_back(loader);
    devices_ = fixed_devices(program_);
    add_imports();
    learn_rank();
    join_process_group();
    place_on_local_device();
    wrap_in_ddp();
    shard_data();
    save_on_first_rank();
    leave_process_group();
    return std::move(steps_);
  }

 private:
  void add(std::string title, std::string why, const Finding& made, const std::vector<Ref>& where) {
    if (!made.fix || made.fix->edits.empty()) return;
    RewriteStep step{std::move(title), std::move(why), {}, made.fix->edits};
    for (const Ref& at : where)
      step.lines.push_back({at.module->path(), at.module->tree().line_of(at.node)});
    steps_.push_back(std::move(step));
  }

  const Module& root() const { return program_.root(); }

  // The script has something else by this name, as a parameter, a variable or an import.
  bool is_taken(std::string_view name) const {
    return !root().defs_of(name, false).empty() || !root().import_path(name).empty();
  }

  std::vector<Ref> imports() const {
    std::vector<Ref> out;
    const auto& tree = root().tree();
    for (NodeId at = tree[0].first_child; at != kNoNode; at = tree[at].next_sibling)
      if (tree[at].kind == Kind::import_statement || tree[at].kind == Kind::import_from)
        out.push_back({&root(), at});
    return out;
  }

  // Before the first import: after the docstring and __future__ imports, which are none.
  void add_imports() {
    const auto all = imports();
    if (all.empty()) return;
    std::string text;
    const auto import = [&](const std::string& line) { text += (text.empty() ? "" : "\n") + line; };
    if (root().import_path("os") != "os") import("import os");
    if (root().import_path("torch") != "torch") import("import torch");
    if (root().import_path(dist_) != "torch.distributed")
      import("import torch.distributed as " + dist_);
    if (root().import_path("DistributedDataParallel").empty())
      import("from torch.nn.parallel import DistributedDataParallel");
    if (!loaders_.empty() && root().import_path("DistributedSampler").empty())
      import("from torch.utils.data import DistributedSampler");
    Finding made;
    edit::insert_before(all.front(), text, "", made);
    add("Import what DDP needs", "The process group, the wrapper and the sampler.", made,
        {all.front()});
  }

  // Below the imports, where every function of the file sees it.
  void learn_rank() {
    const auto all = imports();
    if (all.empty()) return;
    Finding made;
    edit::insert_after(all.back(), "\n" + local_rank_ + " = int(os.environ[\"LOCAL_RANK\"])", "",
                       made);
    add("Learn which rank this is", "torchrun starts one process for each GPU and numbers them.",
        made, {all.back()});
  }

  std::vector<Ref> needs() const {
    std::vector<Ref> out;
    for (const Wrap* wrap : wraps_) {
      out.push_back(wrap->call.ref());
      for (const CallRef& place : pitfalls::facts::placements(program_, *wrap))
        out.push_back(place.ref());
    }
    for (const CallRef& loader : loaders_) out.push_back(loader.ref());
    for (const FixedDevice& device : devices_)
      if (device.needs_gpu) out.push_back(device.where);
    return out;
  }

  void join_process_group() {
    entry_ = ddp_entry(program_, needs());
    if (!entry_.first) return;
    Finding made;
    edit::insert_before(
        entry_.first,
        "torch.cuda.set_device(" + local_rank_ + ")\n" + dist_ + ".init_process_group(\"nccl\")",
        "", made);
    add("Join the process group",
        "Every process takes its own GPU, and the ranks meet before anything else is made.", made,
        {entry_.first});
  }

  void place_on_local_device() {
    Finding made;
    std::vector<Ref> where;
    for (const FixedDevice& device : devices_) {
      const bool is_in_wrap = std::any_of(wraps_.begin(), wraps_.end(), [&](const Wrap* wrap) {
        return root().tree().contains(wrap->call.call->node, device.where.node);
      });
      if (is_in_wrap) continue;  // written anew with the wrapper
      edit::replace(device.where, device.for_rank(local_rank_), "", made);
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
             return std::any_of(devices_.begin(), devices_.end(),
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
      if (place.module != &root() || !is_on_rank(place) || root().tree().contains(at, made))
        return false;
      return root().tree().contains(made, at) ||
             (at < made && program_.guards(place.ref()).empty() &&
              program_.enclosing_function(place.ref()) ==
                  program_.enclosing_function(wrap.call.ref()));
    });
  }

  // What a node says, with the GPU of the rank in place of one that all would take.
  std::string for_rank(Ref node) const {
    std::vector<Edit> edits;
    const auto& tree = root().tree();
    const std::uint32_t begin = tree[node.node].begin;
    for (const FixedDevice& device : devices_)
      if (tree.contains(node.node, device.where.node)) {
        const auto& span = tree[device.where.node];
        edits.push_back({"", span.begin - begin, span.end - begin, device.for_rank(local_rank_)});
      }
    return apply_edits(std::string(node.text()), edits);
  }

  void wrap_in_ddp() {
    Finding made;
    std::vector<Ref> where;
    for (const Wrap* wrap : wraps_) {
      std::string module = for_rank(wrap->module);
      if (!is_placed_above(*wrap)) module += ".to(" + local_rank_ + ")";
      edit::replace(wrap->call.ref(),
                    "DistributedDataParallel(" + module + ", device_ids=[" + local_rank_ + "])", "",
                    made);
      where.push_back(wrap->call.ref());
    }
    add("Wrap in DistributedDataParallel", "Gradients are reduced while backward still runs.", made,
        where);
  }

  // A sampler of its own, an evaluation and an IterableDataset need more than a line.
  bool is_to_be_sharded(const CallRef& loader) const {
    const Ref dataset = loader.argument(0, "dataset");
    return dataset && !pitfalls::has_some_sampler(program_, loader) &&
           !pitfalls::is_evaluation_loader(program_, loader) &&
           !program_.derives_from(program_.class_of(dataset), Api::iterable_dataset);
  }

  void shard_data() {
    for (const CallRef& loader : loaders_) {
      Finding made;
      const Ref dataset = loader.argument(0, "dataset");
      const std::string sampler = "sampler=DistributedSampler(" + std::string(dataset.text()) + ")";
      const Ref shuffle = loader.keyword("shuffle");
      if (shuffle)
        edit::replace(shuffle.with((*shuffle.module)[shuffle.node].parent), sampler, "", made);
      else
        edit::add_argument(loader, sampler, "", made);
      divide_batch(loader.argument(1, "batch_size"), made);
      add("Give each rank its share of the data",
          "The sampler shuffles and splits; DataParallel's batch size was the total of all GPUs.",
          made, {loader.ref()});
    }
  }

  // What users may set is checked to divide; a batch of one cannot be divided.
  void divide_batch(Ref batch, Finding& made) const {
    const Value size = batch ? program_.evaluate(batch) : Value{};
    if (!batch || (size.is_integer() && size.integer < 2)) return;
    const bool joined = batch.kind() == Kind::binary || batch.kind() == Kind::conditional;
    const std::string text(batch.text());
    const std::string total = joined ? "(" + text + ")" : text;
    const std::string ranks = dist_ + ".get_world_size()";
    if (batch.kind() != Kind::integer)
      edit::insert_before(batch, "assert " + total + " % " + ranks + " == 0", "", made);
    edit::replace(batch, total + " // " + ranks, "", made);
  }

  void save_on_first_rank() {
    Finding made;
    std::vector<Ref> where;
    for (const CallRef& save : program_.calls(Api::torch_save)) {
      if (save.module != &root() || program_.guarded_by_rank(save.ref()) != RankTest::none)
        continue;
      edit::guard_statement(save.ref(), dist_ + ".get_rank() == 0", "", made);
      where.push_back(save.ref());
    }
    add("Save on rank 0", "All ranks hold the same weights; one writes the file.", made, where);
  }

  void leave_process_group() {
    const Kind kind = entry_.last.kind();
    if (!entry_.last || kind == Kind::return_statement || kind == Kind::raise_statement) return;
    Finding made;
    edit::insert_after(entry_.last, dist_ + ".destroy_process_group()", "", made);
    add("Leave the process group", "Communicators are torn down in order.", made, {entry_.last});
  }

  const Program& program_;
  std::vector<const Wrap*> wraps_;
  std::vector<CallRef> loaders_;      // of training, without a sampler
  std::vector<FixedDevice> devices_;  // written as one number for all
  DdpEntry entry_;
  std::string local_rank_;
  std::string dist_;
  std::vector<RewriteStep> steps_;
};

}  // namespace

std::vector<RewriteStep> steps_to_ddp(const Program& program) {
  return Rewriter(program).rewrite();
}

}  // namespace bench::diagnose
