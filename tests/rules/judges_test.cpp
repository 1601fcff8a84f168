// Rules that judge runs, from documents written by hand: each fires on the evidence it names and is
// silent on evidence that is near it.
#include "scenarios/pitfalls/laboratory/laboratory.hpp"
#include "scenarios/pitfalls/laboratory/paired_loss.hpp"
#include "scenarios/pitfalls/laboratory/run_evidence.hpp"
#include "scenarios/pitfalls/page.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace bench::pitfalls {
namespace {

// The names of the rules that find something in a document.
std::set<std::string> found(const char* document) {
  std::set<std::string> names;
  for (const Finding& finding : judge_run(RunEvidence(Json::parse(document))))
    names.insert(finding.name);
  return names;
}

struct JudgeCase {
  const char* what;
  const char* document;
  std::set<std::string> rules;
};

class Judges : public testing::TestWithParam<JudgeCase> {};

TEST_P(Judges, FindWhatTheEvidenceShows) {
  EXPECT_EQ(found(GetParam().document), GetParam().rules) << GetParam().what;
}

const JudgeCase kCases[] = {
    {"no evidence", R"({"ranks":[{},{}]})", {}},
    {"the same order in every epoch",
     R"({"ranks":[{"shuffled":true,"epoch_orders":["a","a","a"]}]})",
     {"missing-set-epoch"}},
    {"orders differ", R"({"ranks":[{"shuffled":true,"epoch_orders":["a","b"]}]})", {}},
    {"no shuffling was asked for",
     R"({"ranks":[{"shuffled":false,"epoch_orders":["a","a"]}]})",
     {}},
    {"one epoch", R"({"ranks":[{"shuffled":true,"epoch_orders":["a"]}]})", {}},
    {"an idle GPU",
     R"({"gpus":4,"ranks":[{"batch":6,"shards":[2,2,2]}]})",
     {"batch-not-divisible-by-gpus"}},
    {"a smaller last shard",
     R"({"gpus":4,"ranks":[{"batch":7,"shards":[2,2,2,1]}]})",
     {"batch-not-divisible-by-gpus"}},
    {"equal shards", R"({"gpus":4,"ranks":[{"batch":8,"shards":[2,2,2,2]}]})", {}},
    {"one row beside a batch of 8 on 4 GPUs",
     R"({"gpus":4,"ranks":[{"batch":8,"inputs":[[8,4],[1,4]],"replica_inputs":[[[2,4],[1,4]]],
       "outputs":[1]}]})",
     {"unequal-leading-dims-in-inputs"}},
    {"fewer keyword shards than positional ones",
     R"({"gpus":8,"ranks":[{"inputs":[[8,4],[4,4]],"replica_inputs":[],"outputs":null,
       "error":"The number of modules 8 is not equal to the number of kwargs_tup 4"}]})",
     {"unequal-leading-dims-in-inputs"}},
    {"half a batch beside a whole one, in as many shards",
     R"({"gpus":2,"ranks":[{"inputs":[[8,4],[4,4]],
       "replica_inputs":[[[4,4],[2,4]],[[4,4],[2,4]]],"outputs":[8,4]}]})",
     {}},
    {"all rows equal",
     R"({"gpus":2,"ranks":[{"inputs":[[8,4],[8,4]],
       "replica_inputs":[[[4,4],[4,4]],[[4,4],[4,4]]],"outputs":[8,4]}]})",
     {}},
    {"the same call on one GPU",
     R"({"gpus":1,"ranks":[{"inputs":[[8,4],[1,4]],"replica_inputs":[[[8,4],[1,4]]],
       "outputs":[8,4]}]})",
     {}},
    {"a list of images",
     R"({"gpus":2,"ranks":[{"batch":4,
       "inputs":[{"list":[[3,8,8],[3,8,7],[3,8,6],[3,8,5]]}],
       "replica_inputs":[[{"list":[[2,8,8],[2,8,7],[2,8,6],[2,8,5]]}],
                         [{"list":[[1,8,8],[1,8,7],[1,8,6],[1,8,5]]}]],"outputs":null}]})",
     {"list-input-split-wrongly"}},
    {"a list of lengths",
     R"({"gpus":2,"ranks":[{"batch":4,"inputs":[[4,5],{"list":[null,null,null,null]}],
       "replica_inputs":[[[2,5],{"list":[null,null,null,null]}],
                         [[2,5],{"list":[null,null,null,null]}]],"outputs":[4,5]}]})",
     {"list-input-split-wrongly"}},
    {"two whole batches in a list",
     R"({"gpus":2,"ranks":[{"batch":4,"inputs":[{"list":[[4,5],[4,6]]}],
       "replica_inputs":[[{"list":[[2,5],[2,6]]}],[{"list":[[2,5],[2,6]]}]],"outputs":[4,5]}]})",
     {}},
    {"as many whole batches as samples",
     R"({"gpus":2,"ranks":[{"batch":2,"inputs":[{"list":[[2,5],[2,6]]}],
       "replica_inputs":[[{"list":[[1,5],[1,6]]}],[{"list":[[1,5],[1,6]]}]],"outputs":[2,5]}]})",
     {}},
    {"a list of settings",
     R"({"gpus":2,"ranks":[{"batch":4,"inputs":[[4,5],{"list":[null,null]}],
       "replica_inputs":[[[2,5],{"list":[null,null]}],[[2,5],{"list":[null,null]}]],
       "outputs":[4,5]}]})",
     {}},
    {"a time-major output",
     R"({"gpus":2,"ranks":[{"batch":4,"inputs":[[4,5,6]],
       "replica_inputs":[[[2,5,6]],[[2,5,6]]],"outputs":[10,2,6]}]})",
     {"output-without-batch-dim"}},
    {"a penalty of the weights beside the output",
     R"({"gpus":4,"ranks":[{"batch":12,"inputs":[[12,4]],
       "replica_inputs":[[[3,4]],[[3,4]],[[3,4]],[[3,4]]],
       "outputs":{"list":[[12,4],[16]]}}]})",
     {"output-without-batch-dim"}},
    {"a loss of each replica",
     R"({"gpus":2,"ranks":[{"batch":8,"inputs":[[8,4]],"replica_inputs":[[[4,4]],[[4,4]]],
       "outputs":[2]}]})",
     {}},
    {"an output of the batch",
     R"({"gpus":2,"ranks":[{"batch":8,"inputs":[[8,4]],"replica_inputs":[[[4,4]],[[4,4]]],
       "outputs":[8,4]}]})",
     {}},
    {"inputs that are no shapes",
     R"({"gpus":2,"ranks":[{"batch":"x","inputs":[{"list":3},"a",[null],[]],
       "replica_inputs":[null,[7]],"outputs":{"list":[[],"b"]}}]})",
     {}},
    {"a parameter without gradient",
     R"({"ranks":[{
       "error":"Expected to have finished reduction in the prior iteration before."}]})",
     {"unused-parameters"}},
    {"another error",
     R"({"ranks":[{"error":"Expected all tensors to be on the same device"}]})",
     {}},
    {"a rank waits for a batch that its peer does not have",
     R"({"ranks":[{"batches":4,"end":"ended"},{"batches":5,"end":"silent"}]})",
     {"uneven-batches-per-rank"}},
    {"a rank whose peer has left",
     R"({"ranks":[{"batches":4},{"batches":5,"error":"Connection closed by peer [127.0.0.1]:1"}]})",
     {"uneven-batches-per-rank"}},
    {"uneven, and joined", R"({"ranks":[{"batches":4},{"batches":5}]})", {}},
    {"a search that never found anything",
     R"({"ranks":[{"find_unused_parameters":true,"unused_parameters":0,"steps":5}]})",
     {"needless-unused-search"}},
    {"a search that was needed",
     R"({"ranks":[{"find_unused_parameters":true,"unused_parameters":2,"steps":5}]})",
     {}},
    {"no forward pass through the wrapper",
     R"({"ranks":[{"ddp_forwards":0,"backwards":1,"gradient_sum":64},
                  {"ddp_forwards":0,"backwards":1,"gradient_sum":128}]})",
     {"gradient-path-bypasses-ddp"}},
    {"one backward pass more than forward passes",
     R"({"ranks":[{"ddp_forwards":1,"backwards":2,"gradient_sum":80},
                  {"ddp_forwards":1,"backwards":2,"gradient_sum":112}]})",
     {"second-backward-unsynchronised"}},
    {"equal gradients",
     R"({"ranks":[{"ddp_forwards":1,"backwards":2,"gradient_sum":96},
                  {"ddp_forwards":1,"backwards":2,"gradient_sum":96}]})",
     {}},
    {"the same samples on both ranks",
     R"({"ranks":[{"indices":[0,1,2,3]},{"indices":[3,2,1,0]}]})",
     {"data-not-sharded"}},
    {"a sampler's padding",
     R"({"ranks":[{"indices":[0,2,4,6,8,10]},{"indices":[1,3,5,7,9,0]}]})",
     {}},
    {"shards of a node in a job of two",
     R"({"ranks":[{"sampler_replicas":1,"sampler_rank":0},
                  {"sampler_replicas":1,"sampler_rank":0}]})",
     {"sampler-rank-is-local-rank"}},
    {"a shard for each process",
     R"({"ranks":[{"sampler_replicas":2,"sampler_rank":0},
                  {"sampler_replicas":2,"sampler_rank":1}]})",
     {}},
    {"a sample counted twice",
     R"({"ranks":[{"dataset_size":3,"evaluated":[0,2],"counted":4},
                  {"dataset_size":3,"evaluated":[1,0],"counted":4}]})",
     {"sampler-pads-or-empties"}},
    {"nothing to evaluate",
     R"({"ranks":[{"dataset_size":1,"evaluated":[],"counted":0}]})",
     {"sampler-pads-or-empties"}},
    {"every sample once",
     R"({"ranks":[{"dataset_size":3,"evaluated":[0,2],"counted":3},
                  {"dataset_size":3,"evaluated":[1],"counted":3}]})",
     {}},
    {"a collective that one rank leaves out",
     R"({"ranks":[{"end":"silent","collectives":["all_reduce 8"]},
                  {"end":"ended","collectives":[]}]})",
     {"rank-conditional-collective"}},
    {"a hang without a difference",
     R"({"ranks":[{"end":"silent","collectives":["a 8"]},{"end":"ended","collectives":["a 8"]}]})",
     {}},
    {"a forward pass on one rank",
     R"({"ranks":[{"forwards_on_one_rank":1,"end":"ended"},{"end":"silent"}]})",
     {"rank0-forward-through-wrapper"}},
    {"unequal skips", R"({"ranks":[{"skipped":0},{"skipped":1}]})", {"rank-local-skip-or-break"}},
    {"skipped together", R"({"ranks":[{"skipped":1},{"skipped":1}]})", {}},
    {"two processes act as rank 0",
     R"({"ranks":[{"rank":0,"rank_used":0},{"rank":1,"rank_used":0}]})",
     {"rank-from-current-device"}},
    {"each its own rank", R"({"ranks":[{"rank":0,"rank_used":0},{"rank":1,"rank_used":1}]})", {}},
    {"all on one GPU of two",
     R"({"ranks":[{"device":0,"visible_gpus":2},{"device":0,"visible_gpus":2}]})",
     {"device-not-bound-to-rank"}},
    {"each process sees one GPU",
     R"({"ranks":[{"device":0,"visible_gpus":1},{"device":0,"visible_gpus":1}]})",
     {}},
    {"a truncated batch",
     R"({"ranks":[{"global_batch":10,"samples_per_step":8}]})",
     {"truncating-batch-division"}},
    {"the whole batch", R"({"ranks":[{"global_batch":10,"samples_per_step":10}]})", {}},
    {"a hidden state cut along its layers",
     R"({"ranks":[{"error":"Expected hidden size 2 2 3, got [1, 4, 3]",
       "hidden_shards":[[1,4,3]]}]})",
     {"rnn-under-dataparallel"}},
    {"packs whose rows are not those of their batch sizes",
     R"({"ranks":[{"packed_rows":[5,4],"packed_rows_by_sizes":[7,2]}]})",
     {"rnn-under-dataparallel"}},
    {"whole packs", R"({"ranks":[{"packed_rows":[6,3],"packed_rows_by_sizes":[6,3]}]})", {}},
    {"a vector of losses",
     R"({"ranks":[{"loss_elements":2,
        "error":"grad can be implicitly created only for scalar outputs"}]})",
     {"loss-inside-dp-forward"}},
    {"a sum of losses",
     R"({"ranks":[{"loss_elements":2,"gradient_sum":8,"reference_gradient_sum":4}]})",
     {"loss-inside-dp-forward"}},
    {"their mean",
     R"({"ranks":[{"loss_elements":2,"gradient_sum":4,"reference_gradient_sum":4}]})",
     {}},
    {"a fuller primary GPU",
     R"({"strategy":"data_parallel",
         "ranks":[{"memory_limit_bytes":200,"peak_bytes":[140,100,100]}]})",
     {"primary-gpu-imbalance"}},
    {"a fuller primary GPU with room to double the batch",
     R"({"strategy":"data_parallel",
         "ranks":[{"memory_limit_bytes":280,"peak_bytes":[140,10,10]}]})",
     {}},
    {"a fuller primary GPU of unknown size",
     R"({"strategy":"data_parallel","ranks":[{"peak_bytes":[140,100,100]}]})",
     {}},
    {"nearly even GPUs",
     R"({"strategy":"data_parallel",
         "ranks":[{"memory_limit_bytes":130,"peak_bytes":[125,100,100]}]})",
     {}},
    {"a training forward without gradients",
     R"({"ranks":[{"grad_in_training_forward":false,"error":
         "element 0 of tensors does not require grad and does not have a grad_fn"}]})",
     {"no-grad-training-forward"}},
    {"buffers broadcast between two forwards",
     R"({"ranks":[{"forwards_per_backward":2,"error":
         "one of the variables has been modified by an inplace operation"}]})",
     {"two-forwards-one-backward-with-buffers"}},
    {"an in-place operation of the model's own",
     R"({"ranks":[{"forwards_per_backward":1,"error":
         "one of the variables has been modified by an inplace operation"}]})",
     {}},
    {"a layer unfrozen after wrapping",
     R"({"ranks":[{"parameters_changed_after_wrap":["a"],"changed_gradient_sum":64},
                  {"parameters_changed_after_wrap":["a"],"changed_gradient_sum":128}]})",
     {"parameters-changed-after-wrap"}},
    {"wrapped again after the change",
     R"({"ranks":[{"parameters_changed_after_wrap":[],"changed_gradient_sum":96},
                  {"parameters_changed_after_wrap":[],"changed_gradient_sum":96}]})",
     {}},
    {"every micro-batch reduced",
     R"({"ranks":[{"micro_batches":4,"optimizer_steps":2,"reductions":8,"bucket_bytes":[100]}]})",
     {"accumulation-without-no-sync"}},
    {"the last micro-batch reduced, two buckets",
     R"({"ranks":[{"micro_batches":4,"optimizer_steps":2,"reductions":4,"bucket_bytes":[9,9]}]})",
     {}},
    {"backward outside no_sync",
     R"({"ranks":[{"forward_in_no_sync":[true,true],"backward_in_no_sync":[true,false]}]})",
     {"no-sync-scope"}},
    {"only the first micro-batch in no_sync",
     R"({"ranks":[{"forward_in_no_sync":[true,false],"backward_in_no_sync":[true,false]}]})",
     {}},
    {"the wrapper's names in a checkpoint",
     R"({"ranks":[{"saved_keys":["module.a"],"wanted_keys":["a"],"keys_loaded":0}]})",
     {"save-with-module-prefix"}},
    {"a model that has a part named module",
     R"({"ranks":[{"saved_keys":["module.a"],"wanted_keys":["module.a"],"keys_loaded":1}]})",
     {}},
    {"two ranks write one path",
     R"({"ranks":[{"paths_written":["c"]},{"paths_written":["c"]}]})",
     {"save-on-every-rank"}},
    {"a path for each rank",
     R"({"ranks":[{"paths_written":["c0"]},{"paths_written":["c1"]}]})",
     {}},
    {"a checkpoint on another rank's GPU",
     R"({"ranks":[{"own_gpu":0,"checkpoint_bytes_by_gpu":[9,0]},
                  {"own_gpu":1,"checkpoint_bytes_by_gpu":[9,0]}]})",
     {"load-without-map-location"}},
    {"metrics of one rank each",
     R"({"ranks":[{"decisive_metric":0.5},{"decisive_metric":0.6}]})",
     {"metric-not-reduced"}},
    {"one metric for all", R"({"ranks":[{"decisive_metric":0.5},{"decisive_metric":0.5}]})", {}},
    {"a summed loss under DDP",
     R"({"ranks":[{"summed_gradient":96,"summed_gradient_of_one_process":192}]})",
     {"loss-or-lr-scaling"}},
    {"batch and rate grown alike",
     R"({"ranks":[{"global_batch":40,"batch_of_one_process":20,
                   "learning_rate":0.2,"rate_of_one_process":0.1}]})",
     {}},
    {"the total batch on every rank",
     R"({"ranks":[{"rank_batch":20,"total_batch_meant":20},{"rank_batch":20}]})",
     {"batch-size-not-divided"}},
    {"one sample, two activations",
     R"({"ranks":[{"probe_output":1.0,"batch_rows":4},{"probe_output":1.5,"batch_rows":4}]})",
     {"batchnorm-not-synchronised"}},
    {"replicas with statistics of their own",
     R"({"ranks":[{"replica_probe_outputs":[1.0,1.5],"shard_rows":4}]})",
     {"batchnorm-under-dataparallel"}},
    {"an optimizer of other parameters",
     R"({"ranks":[{"optimizer_parameters":2,"optimizer_parameters_in_model":0}]})",
     {"optimizer-before-device-move"}},
    {"clipping of scaled gradients",
     R"({"ranks":[{"loss_scale":65536,"gradient_norm":2,"norm_seen_by_clip":131072}]})",
     {"gradient-clip-before-unscale"}},
    {"clipping of a loss scale of one",
     R"({"ranks":[{"loss_scale":1,"gradient_norm":2,"norm_seen_by_clip":2}]})",
     {}},
    {"a step on one rank only",
     R"({"ranks":[{"optimizer_steps":5,"weights_after":1},
                  {"optimizer_steps":4,"weights_after":2}]})",
     {"one-rank-state-change"}},
    {"the same augmentation",
     R"({"ranks":[{"crops_hash":"a","dropout_hash":"b"},{"crops_hash":"a","dropout_hash":"b"}]})",
     {"rank-seeding"}},
    {"a split for each rank",
     R"({"ranks":[{"train_split":[1,2],"validation_split":[3]},
                  {"train_split":[1,3],"validation_split":[2]}]})",
     {"rank-seeding"}},
    {"one split",
     R"({"ranks":[{"train_split":[1],"validation_split":[2]},
                               {"train_split":[1],"validation_split":[2]}]})",
     {}},
    {"a bucket for every parameter",
     R"({"ranks":[{"bucket_count":64,"gradient_count":64,"gradient_bytes":65536}]})",
     {"bucket-configuration"}},
    {"one bucket for a small model",
     R"({"ranks":[{"bucket_count":1,"gradient_count":64,"gradient_bytes":65536}]})",
     {}},
    {"strides that differ",
     R"({"ranks":[{"warnings":["Grad strides do not match bucket view strides."]}]})",
     {"grad-stride-mismatch"}},
    {"steps that wait for samples",
     R"({"ranks":[{"data_wait_seconds":0.5,"training_seconds":1,"loader_workers":0}]})",
     {"loader-oversubscription"}},
    {"a loader worker for each rank on one core",
     R"({"ranks":[{"loader_workers":1,"cores":1},{"loader_workers":1,"cores":1}]})",
     {}},
    {"several loader workers for each rank, on who knows how many cores",
     R"({"ranks":[{"loader_workers":4},{"loader_workers":4}]})",
     {}},
    {"as many loader workers as cores",
     R"({"ranks":[{"loader_workers":1,"cores":2},{"loader_workers":1,"cores":2}]})",
     {}},
    {"one rank computes longer",
     R"({"ranks":[{"compute_seconds":0.01,"wall_seconds":0.03},
                  {"compute_seconds":0.03,"wall_seconds":0.03}]})",
     {"hidden-straggler"}},
    {"a port in use",
     R"({"ranks":[{
       "error":"The server socket has failed to listen on any local network address."}]})",
     {"rendezvous-misconfigured"}},
    {"a rank that never starts",
     R"({"ranks":[{"world_size_expected":2,"processes_started":1,"error":"timed out"}]})",
     {"rendezvous-misconfigured"}},
};

INSTANTIATE_TEST_SUITE_P(Documents, Judges, testing::ValuesIn(kCases));

TEST(Laboratory, EveryTrialHasARuleThatJudgesAndAPageThatTells) {
  std::set<std::string> titles;
  for (const Trial& trial : all_trials()) {
    const Rule* rule = find_rule(trial.rule);
    ASSERT_NE(rule, nullptr) << trial.rule;
    EXPECT_NE(rule->judge, nullptr) << trial.rule << " has no judge";
    EXPECT_NE(section(*rule, "Measured here").find("bench --scenario pitfalls"), std::string::npos)
        << trial.rule << ": its page does not say how to reproduce it";
    EXPECT_TRUE(titles.insert(title_of(trial)).second) << title_of(trial);
    EXPECT_FALSE(trial.mistake.empty() || trial.fix.empty()) << title_of(trial);
  }
}

// The rules whose runs a page says the laboratory repeats: every "--select NAME" in the text.
std::set<std::string> selected_in(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  const std::string flag = "--select ";
  std::set<std::string> names;
  for (std::size_t at = text.find(flag); at != std::string::npos; at = text.find(flag, at)) {
    at += flag.size();
    names.insert(text.substr(at, text.find_first_of("` ", at) - at));
  }
  return names;
}

TEST(Laboratory, PagesClaimTheTrialsThatThereAreAndNoOthers) {
  std::set<std::string_view> tried;
  for (const Trial& trial : all_trials()) tried.insert(trial.rule);
  for (const Rule& rule : all_rules()) {
    const std::string measured = section(rule, "Measured here");
    const std::set<std::string> claimed = selected_in(measured);
    for (const std::string& name : claimed)
      EXPECT_TRUE(tried.contains(name)) << rule.name << ": its page selects " << name;
    EXPECT_EQ(claimed.contains(std::string(rule.name)), tried.contains(rule.name))
        << rule.name << ": its page and the laboratory's table disagree";
    EXPECT_EQ(measured.find("Not in the laboratory") == std::string::npos,
              tried.contains(rule.name))
        << rule.name << ": a page without a trial says what evidence it has instead";
  }
}

TEST(Laboratory, SelectsByIdAndNameAndRefusesTheRest) {
  EXPECT_EQ(select_trials({}).size(), all_trials().size());
  EXPECT_EQ(select_trials({"DDP018"}), select_trials({"missing-set-epoch"}));
  EXPECT_EQ(select_trials({"batch-not-divisible-by-gpus", "DDP001"}).size(),
            select_trials({"DP004"}).size() + select_trials({"DDP001"}).size());
  EXPECT_THROW(select_trials({"missing-set-epoc"}), std::exception);
}

// Worked by hand: differences 1, 2, 3 have mean 2 and deviation 1; t(0.975, 2) = 4.30265.
TEST(PairedLoss, IsStudentsIntervalOfTheDifferences) {
  const Json broken{10, 20, 30};
  const Json cured{11, 22, 33};
  const Interval interval = paired_loss(&broken, &cured);
  EXPECT_EQ(interval.seeds, 3U);
  EXPECT_DOUBLE_EQ(interval.mean, 2);
  EXPECT_NEAR(interval.high - interval.mean, 4.30265 / std::sqrt(3.0), 1e-5);
  const Json one{1};
  EXPECT_TRUE(std::isnan(paired_loss(&one, &one).mean));
}

}  // namespace
}  // namespace bench::pitfalls
