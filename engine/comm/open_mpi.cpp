#include "engine/comm/open_mpi.h"

#include <dlfcn.h>
#include <mpi.h>

#include <string_view>

namespace gle {

OpenMpiMessages::OpenMpiMessages() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  if (std::string_view(version, static_cast<size_t>(length)).starts_with("Open MPI v4.")) {
    show_ = static_cast<Show*>(dlsym(RTLD_DEFAULT, "opal_show_help"));
    here_ = show_ != nullptr ? *show_ : nullptr;
  }
}

void OpenMpiMessages::print_here() {
  if (show_ != nullptr) {
    *show_ = here_;
  }
}

}  // namespace gle
