#pragma once

namespace gle::tools {

// Of a program that was stopped and can go on.
inline constexpr int kStoppedBySignal = 75;

// SIGINT and SIGTERM ask for the end, a second one ends the process at once with 130 or 143. The handlers do nothing
// but set flags.
void watch_stop_signals();
bool stop_signalled();

// SIGUSR1 asks for a checkpoint: true once for each time it was asked for.
void watch_checkpoint_signal();
bool take_checkpoint_signal();

}  // namespace gle::tools
