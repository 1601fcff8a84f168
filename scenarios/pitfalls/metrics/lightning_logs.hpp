// What a LightningModule logs in its evaluation: without sync_dist=True the Trainer averages it
// over the batches of one rank.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// self.log() and self.log_dict() in the steps and at the end of validation and test. A warning for
// one value of a function where the Trainer starts several ranks, or where it may and the value is
// one that a callback monitors; notes for the others. Nothing where the Trainer has one device.
void check_lightning_logs(const Program& program, Report& report);

}  // namespace bench::pitfalls
