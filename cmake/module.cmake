# The server module, build/calyx.so, which carries the library within; and its
# tests, which start servers of their own.

# All but its entry, which only a server calls: tests and a fuzzer link it, too.
file(GLOB module_sources CONFIGURE_DEPENDS module/*.c module/*/*.c)
list(FILTER module_sources EXCLUDE REGEX "/module\\.c$")
add_library(module_objects OBJECT EXCLUDE_FROM_ALL ${module_sources})
target_include_directories(module_objects PRIVATE
    module include src ${XXHASH_INCLUDE})
set_target_properties(module_objects PROPERTIES C_EXTENSIONS ON)

if(CALYX_SANITIZE MATCHES "thread|fuzzer")
    return() # the server is not built so
endif()

add_library(calyx_module MODULE module/module.c
    $<TARGET_OBJECTS:module_objects> ${foreign} ${wire})
target_include_directories(calyx_module PRIVATE module src ${XXHASH_INCLUDE})
target_link_libraries(calyx_module PRIVATE calyx_static Threads::Threads)
target_link_options(calyx_module PRIVATE -Wl,--exclude-libs,ALL)
set_target_properties(calyx_module PROPERTIES
    PREFIX "" OUTPUT_NAME calyx C_EXTENSIONS ON)
install(TARGETS calyx_module LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/calyx)
if(NOT CALYX_TESTS)
    return()
endif()

# Debian's python3-redis belongs to Debian's python3.
set(pytest /usr/bin/python3 -m pytest -q -rs -p no:cacheprovider)
set(module_environment
    CALYX_MODULE=$<TARGET_FILE:calyx_module> CALYX=$<TARGET_FILE:calyx-command>
    CALYX_PYTHON=${PROJECT_BINARY_DIR}/python PYTHONDONTWRITEBYTECODE=1)
# What reads bytes and arguments from outside runs with the sanitizer watching. In
# some, it runs less (SANITIZED); the others are then `repeated`: see tests.cmake.
set(module_sanitized fuzz replies server guard steps swap counting whole window
    transfer push push_as convert stream tls valkey cf cf_replies cf_steps plain
    rebuild push_rebuild)
set(module_less_sanitized push transfer whole window)
if(CALYX_SANITIZE)
    execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libasan.so
        OUTPUT_VARIABLE libasan OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(module_tests ${module_sanitized})
    set(module_suffix "+address")
    list(APPEND module_environment CALYX_PRELOAD=${libasan}
        ASAN_OPTIONS=detect_leaks=0:${asan_options})
else()
    file(GLOB module_tests CONFIGURE_DEPENDS test/module/test_*.py)
    list(TRANSFORM module_tests REPLACE ".*/test_(.*)\\.py" "\\1")
endif()

enable_testing()
foreach(name IN LISTS module_tests)
    add_test(NAME module.${name}${module_suffix}
        COMMAND ${pytest} ${PROJECT_SOURCE_DIR}/test/module/test_${name}.py)
    set_tests_properties(module.${name}${module_suffix} PROPERTIES
        ENVIRONMENT "${module_environment}")
    if(NOT CALYX_SANITIZE AND name IN_LIST module_sanitized AND
            NOT name IN_LIST module_less_sanitized)
        set_tests_properties(module.${name} PROPERTIES LABELS repeated)
    endif()
endforeach()

# The types, on a server that is made up.
find_path(CMOCKA_INCLUDE cmocka.h REQUIRED)
find_library(CMOCKA_LIBRARY cmocka REQUIRED)
foreach(name types cuckoo)
    add_executable(module_${name} test/module/test_${name}.c
        test/module/mock_server.c test/unit/support.c
        $<TARGET_OBJECTS:module_objects> ${foreign} ${wire})
    target_include_directories(module_${name} PRIVATE
        module src test/unit ${XXHASH_INCLUDE} ${CMOCKA_INCLUDE})
    target_link_libraries(module_${name} PRIVATE
        calyx_objects m ${CMOCKA_LIBRARY})
    set_target_properties(module_${name} PROPERTIES
        C_EXTENSIONS ON RUNTIME_OUTPUT_DIRECTORY test)
    add_test(NAME module.${name}${module_suffix} COMMAND module_${name})
    if(NOT CALYX_SANITIZE)
        set_tests_properties(module.${name} PROPERTIES LABELS repeated)
    endif()
endforeach()
