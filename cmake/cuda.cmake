# GLE_CUDA   OFF    no CUDA backend, and not one symbol of CUDA
#            ON     by nvcc, cuDNN and cuBLAS
#            host   its very sources by the host compiler, on the emulated device of tests/simt and tests/fake_cuda
# The default is ON where nvcc, cuDNN and cuBLAS are found.
find_program(GLE_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
if(GLE_NVCC)
  get_filename_component(gle_nvcc_real ${GLE_NVCC} REALPATH)
  get_filename_component(gle_cuda_root ${gle_nvcc_real}/../.. ABSOLUTE)
endif()
find_path(GLE_CUDA_INCLUDE cuda_runtime_api.h HINTS ${gle_cuda_root} PATH_SUFFIXES include)
find_path(GLE_CUDNN_INCLUDE cudnn.h HINTS ${gle_cuda_root} PATH_SUFFIXES include)
find_path(GLE_NCCL_INCLUDE nccl.h HINTS ${gle_cuda_root} PATH_SUFFIXES include) # for several GPUs; may be missing
foreach(library cudart cublas cudnn nccl)
  find_library(GLE_LIB_${library} ${library} HINTS ${gle_cuda_root} PATH_SUFFIXES lib64 lib)
endforeach()

set(gle_cuda_missing "")
foreach(part NVCC CUDA_INCLUDE CUDNN_INCLUDE LIB_cudart LIB_cublas LIB_cudnn)
  if(NOT GLE_${part})
    list(APPEND gle_cuda_missing ${part})
  endif()
endforeach()
list(JOIN gle_cuda_missing ", " gle_cuda_missing)
if(gle_cuda_missing)
  set(gle_cuda_default OFF)
else()
  set(gle_cuda_default ON)
endif()
set(GLE_CUDA ${gle_cuda_default} CACHE STRING "The CUDA backend: OFF, ON or host")
set_property(CACHE GLE_CUDA PROPERTY STRINGS OFF ON host)
set(GLE_CUDA_ARCHITECTURES 80 CACHE STRING "What nvcc compiles for, as CMAKE_CUDA_ARCHITECTURES")

if(GLE_CUDA STREQUAL "ON")
  if(gle_cuda_missing)
    message(FATAL_ERROR "GLE_CUDA=ON, but not found: ${gle_cuda_missing}. Install CUDA 13 with cuDNN 9, or configure "
                        "with GLE_CUDA=OFF")
  endif()
  set(CMAKE_CUDA_COMPILER ${GLE_NVCC})
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  set(CMAKE_CUDA_ARCHITECTURES ${GLE_CUDA_ARCHITECTURES})
  set(CMAKE_CUDA_RUNTIME_LIBRARY None)
  enable_language(CUDA)
  # CMake before 3.26 knows nvcc's C++ up to 17 only.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA_STANDARD 20)
elseif(GLE_CUDA STREQUAL "host")
  if(NOT GLE_CUDA_INCLUDE OR NOT GLE_CUDNN_INCLUDE OR NOT GLE_TESTS)
    message(FATAL_ERROR "GLE_CUDA=host needs the headers of CUDA and cuDNN, and GLE_TESTS")
  endif()
elseif(GLE_CUDA STREQUAL "OFF")
  if(gle_cuda_missing)
    message(STATUS "No CUDA backend: not found: ${gle_cuda_missing}")
  else()
    message(STATUS "No CUDA backend: GLE_CUDA=OFF")
  endif()
else()
  message(FATAL_ERROR "GLE_CUDA is OFF, ON or host, not '${GLE_CUDA}'")
endif()

set(gle_nccl OFF)
if((GLE_CUDA STREQUAL "ON" AND GLE_NCCL_INCLUDE AND GLE_LIB_nccl) OR (GLE_CUDA STREQUAL "host" AND GLE_NCCL_INCLUDE))
  set(gle_nccl ON)
endif()

# gle_add_cuda_sources(TARGET sources...): .cu by nvcc or by the host compiler with the checker's access callbacks
# (tests/simt/simt.h), the rest as ever.
function(gle_add_cuda_sources target)
  target_sources(${target} PRIVATE ${ARGN})
  target_include_directories(${target} SYSTEM PRIVATE ${GLE_CUDA_INCLUDE} ${GLE_CUDNN_INCLUDE})
  if(GLE_CUDA STREQUAL "host")
    set(kernels ${ARGN})
    list(FILTER kernels INCLUDE REGEX "\\.cu$")
    gle_compile_for_emulator(${kernels})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:gle_fake_cuda>)
  else()
    target_link_libraries(${target} PRIVATE ${GLE_LIB_cudnn} ${GLE_LIB_cublas} ${GLE_LIB_cudart})
  endif()
endfunction()

# Instrumented, but libtsan and libubsan are never linked: tests/simt defines their callbacks.
function(gle_compile_for_emulator)
  set_source_files_properties(
    ${ARGN} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS
                       "-O2;-g1;-fsanitize=thread,alignment;-fno-omit-frame-pointer;-Wno-unknown-pragmas")
endfunction()
