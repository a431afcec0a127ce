#include "burin/threads.h"
#include "frontend/tensor/context/LocationScope.h"
#include "runtime/threads/CpuTopology.h"
#include "runtime/threads/Pool.h"

namespace burin {

int num_threads() { return rt::Pool::shared().threads(); }

void set_num_threads(int threads, Location where) {
  const Location place = detail::inScope(where);
  if (threads < 1 || threads > 1024)
    throw Error(place, "set_num_threads", std::to_string(threads) + " is not a number from 1 to 1024");
  if (!rt::setDefaultThreads(threads) && threads != num_threads())
    throw Error(place, "set_num_threads",
                "there are " + std::to_string(num_threads()) +
                    " threads already; call it before the first op, or set BURIN_NUM_THREADS");
}

} // namespace burin
