// Number of threads.
#pragma once
#include "burin/error.h"

namespace burin {

/// Number of threads, including the caller, that kernels of eager calls, jitted functions and artifacts use. The
/// default is the number of cores that the process may use (affinity mask and cgroup quota), or the environment
/// variable BURIN_NUM_THREADS. Results do not depend on it. As torch.get_num_threads.
BURIN_API int num_threads();
/// Sets the number, from 1 to 1024. Throws once threads may have started: call it before the first op. As
/// torch.set_num_threads. A session of the C API has its own number: burin_session_options.threads.
BURIN_API void set_num_threads(int threads, Location where = Location::current());

} // namespace burin
