#pragma once

namespace gle {

// What Open MPI 4 says about trouble with a peer goes to the launcher, and the caller of whatever function of MPI waits
// until that has taken it. A launcher that has found a rank dead takes nothing any more: for the two seconds until it
// kills the others they would hang in MPI and could not say which rank it was. Between construction, before MPI begins,
// and print_here(), after that, this finds the way that such messages take without a launcher, to stderr, and keeps to
// it. Does nothing with other libraries.
class OpenMpiMessages {
 public:
  OpenMpiMessages();
  void print_here();

 private:
  using Show = int (*)(const char* file, const char* topic, int header, ...);
  Show* show_ = nullptr;  // a variable of the library
  Show here_ = nullptr;
};

}  // namespace gle
