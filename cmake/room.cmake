# One library per folder. What a room may include is what it links: a dependency in the wrong direction does not build.
#   gle_room(NAME sources... LINKS rooms...)   ->  target gle_NAME, alias gle::NAME
function(gle_compile_options target)
  target_compile_options(
    ${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wconversion;$<$<BOOL:${GLE_WERROR}>:-Werror>>
                      $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra;$<$<BOOL:${GLE_WERROR}>:-Werror=all-warnings>>)
  if(GLE_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${GLE_SANITIZE};-fno-omit-frame-pointer>)
    target_link_options(${target} PUBLIC -fsanitize=${GLE_SANITIZE})
  endif()
  if(GLE_FUZZ) # what a fuzzer does not see it cannot aim at
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
    target_link_options(${target} PUBLIC -fsanitize=fuzzer-no-link)
  endif()
endfunction()

function(gle_room name)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "" "LINKS")
  # Whatever a parent project shares: rooms hide their symbols; libgle.so is what exports some.
  add_library(gle_${name} STATIC ${room_UNPARSED_ARGUMENTS})
  add_library(gle::${name} ALIAS gle_${name})
  set_target_properties(gle_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(gle_${name} PUBLIC cxx_std_20)
  target_include_directories(gle_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/gle>)
  target_link_libraries(gle_${name} PUBLIC ${room_LINKS})
  gle_compile_options(gle_${name})
  set_property(GLOBAL APPEND PROPERTY GLE_ROOMS gle_${name})
endfunction()

# Compiles the sources once per instruction set and adds the objects to the target; see engine/cpu/isa.h. They are
# optimised in every build type: unoptimised vector code is a hundred times slower and tests nothing more. Sanitizers
# make the optimiser slow, so there a little has to do.
function(gle_add_isa_sources target)
  set(optimise -O3)
  if(GLE_SANITIZE)
    set(optimise -O1)
  endif()
  set(flags_baseline "")
  set(flags_avx2 -mavx2 -mfma)
  set(flags_avx512 -mavx512f -mavx512vl -mavx512bw -mavx512dq -mavx2 -mfma -mprefer-vector-width=512)
  foreach(isa baseline avx2 avx512)
    add_library(${target}_${isa} OBJECT ${ARGN})
    target_compile_definitions(${target}_${isa} PRIVATE GLE_ISA=${isa})
    target_compile_options(${target}_${isa} PRIVATE ${flags_${isa}} ${optimise} -fno-math-errno
                                                     $<$<CXX_COMPILER_ID:GNU>:-Wno-psabi>)
    target_include_directories(${target}_${isa} PRIVATE ${PROJECT_SOURCE_DIR})
    gle_compile_options(${target}_${isa})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_${isa}>)
    if(target MATCHES "^gle_") # a room
      set_property(GLOBAL APPEND PROPERTY GLE_ISA_OBJECTS ${target}_${isa})
    endif()
  endforeach()
endfunction()
