// A loopback port for the rendezvous of one job's ranks.
#pragma once

namespace bench {

// A port that was free a moment ago. Another program may take it before rank 0 listens; the job
// then fails with "address already in use" and is run again on another port (job_runner).
int pick_free_port();

}  // namespace bench
