#pragma once

namespace gle {

// SIGINT and SIGTERM ask for the end of a run, SIGUSR1 for a checkpoint; a second SIGINT or SIGTERM ends the process at
// once with 130 or 143. The handlers do nothing but set flags.
void watch_stop_signals();
bool stop_signalled();
// True once for each time it was asked for.
bool take_checkpoint_signal();

}  // namespace gle
