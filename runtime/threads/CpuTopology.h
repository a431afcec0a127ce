// How many threads this process should run.
#pragma once

namespace burin::rt {

/// Cores in the affinity mask of the calling thread, at most the cgroup's CPU quota, at least 1.
int availableCores();

/// The threads of the pool that the process shares: what setDefaultThreads() was given, else BURIN_NUM_THREADS if it is
/// set to a number from 1 to 1024, else availableCores().
int defaultThreads();
/// Says what defaultThreads() returns. False, without effect, once it has been called, as threads may run already.
bool setDefaultThreads(int threads);

/// The core that the calling thread is on; -1 if the system does not tell.
int currentCore();

/// Moves the calling thread off this core, to any other that it may use, and keeps it off until it leaves another: the
/// system would wake it there again. Nothing, if it may use no other.
void leaveCore(int core);

} // namespace burin::rt
