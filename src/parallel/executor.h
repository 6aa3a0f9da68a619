// Executors: the four ways to run a loop in parallel, all behind the table that hosts fill too.
#pragma once

#include "sparsekit/sparsekit.h"

namespace spk {

using Executor = spk_host_executor;

// NULL where not built in.
const Executor *serial_executor();
const Executor *tbb_executor();
const Executor *openmp_executor();

// What an SPK_EXECUTOR_... code stands for; SPK_EXECUTOR_DEFAULT is resolved by the caller.
const Executor *built_in_executor(int32_t code);
int32_t default_executor();

// Threads that this process may use: min(affinity mask, cgroup quota rounded up), at least 1.
int32_t available_threads();

// Thread pools do not survive fork(), neither ours nor a pool that the host shares with us: a child
// of a process that has made a call runs serially.
void watch_forks();
bool is_forked_child();

}  // namespace spk
