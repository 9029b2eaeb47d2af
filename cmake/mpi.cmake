# GLE_MPI   AUTO   several ranks in the programs where MPI is found
#           ON     or stop
#           OFF    none of it, not one symbol
set(GLE_MPI AUTO CACHE STRING "Runs of several processes by MPI: AUTO, ON or OFF")
set_property(CACHE GLE_MPI PROPERTY STRINGS AUTO ON OFF)
set(MPI_CXX_SKIP_MPICXX ON)
set(gle_mpi OFF)
if(NOT GLE_MPI STREQUAL "OFF")
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(gle_mpi ON)
  elseif(GLE_MPI STREQUAL "AUTO")
    message(STATUS "Runs of one process only: MPI is not found")
  else()
    message(FATAL_ERROR "GLE_MPI=${GLE_MPI}, but MPI is not found: install libopenmpi-dev, or configure with GLE_MPI=OFF")
  endif()
endif()
