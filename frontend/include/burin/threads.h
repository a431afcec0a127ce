// Threads of the process.
#pragma once
#include "burin/error.h"

namespace burin {

/// How many threads the kernels of eager calls, jitted functions and artifacts share, the caller included. By default
/// as many as the process may use cores (affinity mask and cgroup quota), or the environment variable
/// BURIN_NUM_THREADS. Results do not depend on it. As torch.get_num_threads.
BURIN_API int num_threads();
/// Sets it, from 1 to 1024. Throws once threads may have started: call it before the first op. As
/// torch.set_num_threads. A session of the C API has a number of its own: burin_session_options.threads.
BURIN_API void set_num_threads(int threads, Location where = Location::current());

} // namespace burin
