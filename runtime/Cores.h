// How many threads this process should run.
#pragma once

namespace burin::rt {

/// Cores in the affinity mask of the calling thread, at most the cgroup's CPU quota, at least 1.
int availableCores();

/// BURIN_NUM_THREADS if it is set to a number from 1 to 1024, else availableCores().
int defaultThreads();

} // namespace burin::rt
