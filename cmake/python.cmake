# The binding for Python, where its header is installed: python/ says more. The
# package of a wheel is built by python/backend.py; this one is for tests.

if(CALYX_SANITIZE)
    return() # the interpreter is not built so
endif()
find_program(CALYX_PYTHON python3 HINTS /usr/bin) # Debian's, which has pytest
if(CALYX_PYTHON)
    execute_process(COMMAND ${CALYX_PYTHON} -c
        "import sysconfig; print(sysconfig.get_path('include'))"
        OUTPUT_VARIABLE PYTHON_INCLUDE OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(NOT CALYX_PYTHON OR NOT EXISTS ${PYTHON_INCLUDE}/Python.h)
    message(NOTICE "no header of Python here, so no binding for it")
    return()
endif()

file(GLOB python_sources CONFIGURE_DEPENDS python/calyx/*.c)
add_library(calyx_python MODULE ${python_sources})
target_include_directories(calyx_python SYSTEM PRIVATE ${PYTHON_INCLUDE})
target_link_libraries(calyx_python PRIVATE calyx_static Threads::Threads)
set_target_properties(calyx_python PROPERTIES
    PREFIX "" OUTPUT_NAME _calyx SUFFIX .abi3.so C_EXTENSIONS ON
    LIBRARY_OUTPUT_DIRECTORY python/calyx)
add_custom_command(TARGET calyx_python POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E copy
        ${PROJECT_SOURCE_DIR}/python/calyx/__init__.py
        ${PROJECT_SOURCE_DIR}/python/calyx/plain.py
        ${PROJECT_SOURCE_DIR}/python/calyx/dask.py
        ${PROJECT_SOURCE_DIR}/python/calyx/parts.py
        ${PROJECT_BINARY_DIR}/python/calyx)

if(NOT CALYX_TESTS)
    return()
endif()
add_test(NAME python.binding COMMAND ${CALYX_PYTHON} -m pytest -q -p no:cacheprovider
    ${PROJECT_SOURCE_DIR}/test/python/test_binding.py)
# Not in build/: there calyx.so, the server module, would be taken for it.
set_tests_properties(python.binding PROPERTIES
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/test/python ENVIRONMENT
    "PYTHONPATH=${PROJECT_BINARY_DIR}/python;PYTHONDONTWRITEBYTECODE=1;\
CALYX=$<TARGET_FILE:calyx-command>")
add_test(NAME python.package COMMAND
    ${PROJECT_SOURCE_DIR}/test/python/package ${CALYX_PYTHON})
# Skips itself without Debian's python3-distributed.
add_test(NAME cluster.dask COMMAND /usr/bin/python3 -m pytest -q -p no:cacheprovider
    ${PROJECT_SOURCE_DIR}/test/cluster/test_dask.py ${PROJECT_SOURCE_DIR}/test/cluster/test_parts.py)
set_tests_properties(cluster.dask PROPERTIES
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/test/python ENVIRONMENT
    "PYTHONPATH=${PROJECT_BINARY_DIR}/python;PYTHONDONTWRITEBYTECODE=1;\
CALYX=$<TARGET_FILE:calyx-command>")
add_test(NAME example.dask COMMAND ${PROJECT_SOURCE_DIR}/examples/dask/run 2000000)
set_tests_properties(example.dask PROPERTIES SKIP_RETURN_CODE 77 ENVIRONMENT
    "CALYX=$<TARGET_FILE:calyx-command>;CALYX_PYTHON=${PROJECT_BINARY_DIR}/python;\
PYTHONDONTWRITEBYTECODE=1")
