#include "tools/cli/stop_signals.h"

#include <unistd.h>
#include <csignal>

namespace gle::tools {

namespace {

volatile std::sig_atomic_t stop_wanted = 0;
volatile std::sig_atomic_t user_asked = 0;
volatile std::sig_atomic_t checkpoint_wanted = 0;

extern "C" void on_stop_signal(int signal) {
  if (user_asked != 0) {
    ::_exit(128 + signal);
  }
  user_asked = 1;
  stop_wanted = 1;
}

// A closing terminal sends several, of which none is a user who will not wait.
extern "C" void on_hang_up(int) { stop_wanted = 1; }

extern "C" void on_checkpoint_signal(int) { checkpoint_wanted = 1; }

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

void watch_stop_signals() {
  handle(SIGINT, on_stop_signal);
  handle(SIGTERM, on_stop_signal);
  if (!is_ignored(SIGHUP)) {  // by nohup
    handle(SIGHUP, on_hang_up);
  }
  handle(SIGPIPE, SIG_IGN);  // who reads the messages may be gone; what the program is for goes into its folder
  handle(SIGXFSZ, SIG_IGN);  // a file that grows beyond the user's limit is an error of write()
}

bool stop_signalled() { return stop_wanted != 0; }

void watch_checkpoint_signal() { handle(SIGUSR1, on_checkpoint_signal); }

bool take_checkpoint_signal() {
  const bool wanted = checkpoint_wanted != 0;
  checkpoint_wanted = 0;
  return wanted;
}

}  // namespace gle::tools
