# What the CMake files of the languages share.

# sparsekit_skip(<language> <reason>): says why a language is not built; the caller returns.
function(sparsekit_skip language reason)
  if(SPARSEKIT_BINDINGS_REQUIRED)
    message(FATAL_ERROR "SparseKit: no ${language} binding: ${reason}")
  endif()
  message(STATUS "SparseKit: no ${language} binding: ${reason}")
endfunction()

find_program(SPARSEKIT_SWIG NAMES swig4.0 swig)

# sparsekit_swig(<language> <wrapper> FLAGS -python ... [OUTDIR dir] [BYPRODUCTS files])
# A rule that makes <wrapper> (a .c or .cc file) from sparsekit.i and lang/<language>/lang.i, and the
# language's own files in OUTDIR (default: where the wrapper is).
function(sparsekit_swig language wrapper)
  cmake_parse_arguments(ARG "" "OUTDIR" "FLAGS;BYPRODUCTS" ${ARGN})
  if(NOT ARG_OUTDIR)
    get_filename_component(ARG_OUTDIR ${wrapper} DIRECTORY)
  endif()
  set(swig ${PROJECT_SOURCE_DIR}/bindings/swig)
  file(GLOB language_files CONFIGURE_DEPENDS ${swig}/lang/${language}/*)
  get_filename_component(folder ${wrapper} DIRECTORY)
  file(MAKE_DIRECTORY ${ARG_OUTDIR} ${folder})
  add_custom_command(
    OUTPUT ${wrapper} ${ARG_BYPRODUCTS}
    COMMAND ${SPARSEKIT_SWIG} ${ARG_FLAGS} -Werror -I${swig}/lang/${language} -I${swig}
            -I${PROJECT_SOURCE_DIR}/include -outdir ${ARG_OUTDIR} -o ${wrapper} ${swig}/sparsekit.i
    DEPENDS ${swig}/sparsekit.i ${swig}/flat.h ${language_files}
            ${PROJECT_SOURCE_DIR}/include/sparsekit/sparsekit.h
            ${PROJECT_SOURCE_DIR}/include/sparsekit/training.h
    COMMENT "Wrapping SparseKit for ${language}"
    VERBATIM)
endfunction()

# sparsekit_module(<target> <wrapper>): the wrapper as a module that the language loads.
function(sparsekit_module target wrapper)
  add_library(${target} MODULE ${wrapper})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/bindings/swig)
  target_link_libraries(${target} PRIVATE sparsekit)
  set_target_properties(${target} PROPERTIES PREFIX "" C_VISIBILITY_PRESET default
                                             CXX_VISIBILITY_PRESET default)
  target_compile_options(${target} PRIVATE -w)  # generated code
endfunction()

# sparsekit_conformance(<language> [ENVIRONMENT NAME=value ...] COMMAND <driver ...>)
# Runs the driver on all cases and judges what it wrote: the test <language>_conformance.
function(sparsekit_conformance language)
  cmake_parse_arguments(ARG "" "" "ENVIRONMENT;COMMAND" ${ARGN})
  add_test(NAME ${language}_conformance
           COMMAND ${SPARSEKIT_PYTHON3} ${PROJECT_SOURCE_DIR}/bindings/conformance/run.py
                   ${SPARSEKIT_CONFORMANCE_CASES} ${CMAKE_CURRENT_BINARY_DIR}/conformance/${language}
                   -- ${ARG_COMMAND})
  set_tests_properties(${language}_conformance PROPERTIES
                       ENVIRONMENT "${ARG_ENVIRONMENT}" LABELS "bindings;${language}" TIMEOUT 600
                       FIXTURES_REQUIRED conformance_cases)
endfunction()

# sparsekit_binding_test(<language> <name> [ENVIRONMENT NAME=value ...] COMMAND <command ...>)
function(sparsekit_binding_test language name)
  cmake_parse_arguments(ARG "" "" "ENVIRONMENT;COMMAND" ${ARGN})
  add_test(NAME ${language}_${name} COMMAND ${ARG_COMMAND})
  set_tests_properties(${language}_${name} PROPERTIES
                       ENVIRONMENT "${ARG_ENVIRONMENT}" LABELS "bindings;${language}" TIMEOUT 600)
endfunction()
