#include "diagnose/driver/to_ddp.hpp"

#include "scenarios/pitfalls/edits.hpp"
#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/loaders.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

namespace edit = pitfalls;

class Rewriter {
 public:
  explicit Rewriter(const Program& program) : program_(program) {}

  std::vector<RewriteStep> rewrite() {
    for (const Wrap& wrap : program_.wraps())
      if (wrap.kind == Wrapper::data_parallel && wrap.call.module == &program_.root())
        wraps_.push_back(&wrap);
    if (wraps_.empty()) return {};
    add_imports();
    start_process_group();
    place_on_local_device();
    wrap_in_ddp();
    shard_data();
    set_epochs();
    save_on_first_rank();
    end_process_group();
    return std::move(steps_);
  }

 private:
  void add(std::string title, std::string why, const Finding& made, std::vector<Ref> where) {
    if (!made.fix || made.fix->edits.empty()) return;
    RewriteStep step{std::move(title), std::move(why), {}, made.fix->edits};
    for (const Ref& at : where) step.lines.push_back(at.module->tree().line_of(at.node));
    std::sort(step.lines.begin(), step.lines.end());
    steps_.push_back(std::move(step));
  }

  const Module& root() const { return program_.root(); }

  // The first import, before which new ones go (after __future__ imports and the docstring).
  Ref first_import() const {
    const auto& tree = root().tree();
    for (NodeId at = tree[0].first_child; at != kNoNode; at = tree[at].next_sibling)
      if (tree[at].kind == Kind::import_statement || tree[at].kind == Kind::import_from)
        return {&root(), at};
    return {};
  }

  void add_imports() {
    const Ref at = first_import();
    if (!at) return;
    std::string text;
    if (root().import_path("os").empty()) text += "import os\n";
    if (root().import_path("dist") != "torch.distributed")
      text += "import torch.distributed as dist\n";
    text += "from torch.nn.parallel import DistributedDataParallel\n";
    text += "from torch.utils.data import DistributedSampler";
    Finding made;
    edit::insert_before(at, text, "", made);
    add("Import what DDP needs", "The process group, the wrapper and the sampler.", made, {at});
  }

  // The first statement of the wrapper's function that builds or places something.
  Ref start_of_work() const {
    const Ref wrap = edit::statement_of(wraps_.front()->call.ref());
    const auto& tree = root().tree();
    const NodeId function = root().function_of(wrap.node);
    const NodeId block = function == 0 ? 0 : tree.child(function, Field::body);
    for (NodeId at = tree[block].first_child; at != kNoNode; at = tree[at].next_sibling) {
      if (tree[at].kind == Kind::function || tree[at].kind == Kind::class_definition ||
          tree[at].kind == Kind::decorated)
        continue;
      for (const CallRef& call : pitfalls::facts::calls_in({&root(), at})) {
        const bool places =
            (call.call->name == "to" || call.call->name == "cuda") && call.receiver();
        if (places || call.call->api == Api::data_loader || call.call->api == Api::torch_device ||
            call.call->api == Api::data_parallel)
          return {&root(), at};
      }
      if (tree.contains(at, wrap.node)) return {&root(), at};
    }
    return wrap;
  }

  void start_process_group() {
    const Ref at = start_of_work();
    Finding made;
    edit::insert_before(at,
                        "local_rank = int(os.environ[\"LOCAL_RANK\"])\n"
                        "torch.cuda.set_device(local_rank)\n"
                        "dist.init_process_group(\"nccl\")",
                        "", made);
    add("Join the process group", "torchrun starts one process for each GPU and tells it its rank.",
        made, {at});
  }

  void place_on_local_device() {
    Finding made;
    std::vector<Ref> where;
    for (const CallRef& call : program_.calls(Api::torch_device)) {
      if (call.module != &root()) continue;
      const auto index = pitfalls::facts::cuda_index(program_, call.ref());
      if (!index) continue;
      edit::replace(call.ref(), "torch.device(\"cuda\", local_rank)", "", made);
      where.push_back(call.ref());
    }
    add("Use the GPU of this rank", "Every process owns one device.", made, where);
  }

  void wrap_in_ddp() {
    Finding made;
    std::vector<Ref> where;
    for (const Wrap* wrap : wraps_) {
      std::string module(wrap->module ? wrap->module.text() : "model");
      const bool placed = !pitfalls::facts::placements(program_, *wrap).empty();
      // DataParallel may be moved after wrapping; DDP wants the module on its device before.
      if (!placed || module.find(".cuda(") == std::string::npos) module += ".to(local_rank)";
      edit::replace(wrap->call.ref(),
                    "DistributedDataParallel(" + module + ", device_ids=[local_rank])", "", made);
      where.push_back(wrap->call.ref());
    }
    add("Wrap in DistributedDataParallel", "Gradients are reduced while backward still runs.", made,
        where);
  }

  void shard_data() {
    for (const CallRef& loader : program_.calls(Api::data_loader)) {
      if (loader.module != &root() || pitfalls::has_some_sampler(program_, loader)) continue;
      const bool evaluation = pitfalls::is_evaluation_loader(program_, loader);
      const Ref dataset = loader.argument(0, "dataset");
      if (!dataset || evaluation) continue;
      Finding made;
      const Ref shuffle = loader.keyword("shuffle");
      const std::string sampler = "sampler=DistributedSampler(" + std::string(dataset.text()) + ")";
      if (shuffle) {
        const Ref argument = shuffle.with((*shuffle.module)[shuffle.node].parent);
        edit::replace(argument, sampler, "", made);
      } else {
        edit::add_argument(loader, sampler, "", made);
      }
      const Ref batch = loader.argument(1, "batch_size");
      if (batch && batch.kind() != Kind::binary)
        edit::replace(batch, std::string(batch.text()) + " // dist.get_world_size()", "", made);
      add("Give each rank its share of the data",
          "The sampler shuffles and splits; DataParallel's batch size was the total of all GPUs.",
          made, {loader.ref()});
    }
  }

  void set_epochs() {
    for (const TrainingLoop& loop : program_.training_loops()) {
      if (!loop.epochs || loop.epochs.module != &root()) continue;
      const Ref variable = loop.epochs.child(Field::left);
      for (const CallRef& loader : pitfalls::loaders_of(program_, loop.iterable)) {
        const std::string_view name = program_.assigned_name(loader.ref());
        if (name.empty() || !variable || variable.kind() != Kind::identifier) continue;
        Finding made;
        edit::insert_first(
            loop.epochs.child(Field::body),
            std::string(name) + ".sampler.set_epoch(" + std::string(variable.text()) + ")", "",
            made);
        add("Shuffle anew in each epoch", "Without set_epoch every epoch has the same order.", made,
            {loop.epochs});
      }
    }
  }

  void save_on_first_rank() {
    Finding made;
    std::vector<Ref> where;
    for (const CallRef& save : program_.calls(Api::torch_save)) {
      if (save.module != &root() || program_.guarded_by_rank(save.ref()) != RankTest::none)
        continue;
      edit::guard_statement(save.ref(), "dist.get_rank() == 0", "", made);
      where.push_back(save.ref());
    }
    add("Save on rank 0", "All ranks hold the same weights; one writes the file.", made, where);
  }

  void end_process_group() {
    const auto& tree = root().tree();
    const NodeId function = root().function_of(wraps_.front()->call.call->node);
    const NodeId block = function == 0 ? 0 : tree.child(function, Field::body);
    NodeId last = kNoNode;
    for (NodeId at = tree[block].first_child; at != kNoNode; at = tree[at].next_sibling) last = at;
    if (last == kNoNode || tree[last].kind == Kind::return_statement) return;
    Finding made;
    edit::insert_after({&root(), last}, "dist.destroy_process_group()", "", made);
    add("Leave the process group", "Communicators are torn down in order.", made,
        {{&root(), last}});
  }

  const Program& program_;
  std::vector<const Wrap*> wraps_;
  std::vector<RewriteStep> steps_;
};

}  // namespace

std::vector<RewriteStep> rewrite_to_ddp(const Program& program) {
  return Rewriter(program).rewrite();
}

std::string render_steps(const std::string& file, const std::vector<RewriteStep>& steps) {
  if (steps.empty()) return file + ": no DataParallel call to rewrite\n";
  std::string out = file + ": from DataParallel to DistributedDataParallel\n";
  std::size_t number = 0;
  for (const RewriteStep& step : steps) {
    out += std::to_string(++number) + ". " + step.title + " (line";
    for (std::size_t i = 0; i < step.lines.size(); ++i)
      out += (i == 0 ? (step.lines.size() > 1 ? "s " : " ") : ", ") + std::to_string(step.lines[i]);
    out += "): " + step.why + "\n";
  }
  return out + std::to_string(++number) +
         ". Launch it: torchrun --standalone --nproc-per-node=gpu " + file + "\n";
}

}  // namespace bench::diagnose
