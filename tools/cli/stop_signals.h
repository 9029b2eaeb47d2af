#pragma once

namespace gle::tools {

// Of a program that was stopped and can go on.
inline constexpr int kStoppedBySignal = 75;

// SIGINT, SIGTERM and, unless nohup has it ignored, SIGHUP ask for the end; a second SIGINT or SIGTERM ends the process
// at once with 130 or 143. The handlers do nothing but set flags. From here on a closed pipe ends nothing either: this
// is for programs that write into a folder, not for those whose results go to stdout.
void watch_stop_signals();
bool stop_signalled();

// SIGUSR1 asks for a checkpoint: true once for each time it was asked for.
void watch_checkpoint_signal();
bool take_checkpoint_signal();

}  // namespace gle::tools
