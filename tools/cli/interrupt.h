#pragma once

namespace gle::tools {

inline constexpr int kStoppedBySignal = 75;

// From here on SIGINT and SIGTERM only leave a note; a second one ends the program at once.
void watch_interrupts();
bool interrupted();

}  // namespace gle::tools
