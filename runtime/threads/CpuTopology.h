// The number of threads that this process should use.
#pragma once

namespace burin::rt {

/// Cores in the affinity mask of the calling thread, limited by the cgroup's CPU quota; at least 1.
int availableCores();

/// Size of the shared pool: the argument of setDefaultThreads(), or BURIN_NUM_THREADS if it is set to a number from 1
/// to 1024, or availableCores().
int defaultThreads();
/// Sets the result of defaultThreads(). Returns false, without effect, once that has been called, as threads may exist.
bool setDefaultThreads(int threads);

/// The core that the calling thread runs on; -1 if unknown.
int currentCore();

/// Moves the calling thread off this core to any other core of its affinity mask, and keeps it off until it leaves
/// another one, because the system would wake it there again. No effect if there is no other core.
void leaveCore(int core);

} // namespace burin::rt
