# Programs that use the library as anybody would: examples, benchmark, fuzzers.

find_package(Threads REQUIRED)

file(GLOB examples CONFIGURE_DEPENDS examples/*.c)
foreach(source IN LISTS examples)
    cmake_path(GET source STEM name)
    list(APPEND example_names ${name})
    add_executable(example_${name} ${source})
    target_link_libraries(example_${name} PRIVATE calyx Threads::Threads m)
    set_target_properties(example_${name} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY examples)
endforeach()

find_library(LIBBLOOM bloom)
file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.c)
if(LIBBLOOM)
    add_executable(calyx-bench EXCLUDE_FROM_ALL ${bench_sources})
    target_include_directories(calyx-bench PRIVATE src ${XXHASH_INCLUDE})
    target_compile_definitions(calyx-bench PRIVATE CALYX_BENCH_LIBBLOOM=1)
    target_link_libraries(calyx-bench PRIVATE
        calyx Threads::Threads m ${LIBBLOOM})
    set_target_properties(calyx-bench PROPERTIES C_EXTENSIONS ON)
endif()

# RedisBloom's layout knows no server, so that it can be tried without one.
set(redisbloom module/redisbloom.c module/redisbloom_data.c)

file(GLOB fuzzers CONFIGURE_DEPENDS fuzz/fuzz_*.c)
set(fuzz_redisbloom_needs ${redisbloom})
file(GLOB fuzz_module_needs CONFIGURE_DEPENDS module/*.c)
list(FILTER fuzz_module_needs EXCLUDE REGEX "/module\\.c$")
list(APPEND fuzz_module_needs test/module/mock_server.c)
set(fuzz_module_options --mutate=500)
set(fuzz_redisbloom_options --mutate=2000)
if(CALYX_SANITIZE MATCHES fuzzer)
    foreach(source IN LISTS fuzzers)
        cmake_path(GET source STEM name)
        add_executable(${name} ${source} ${${name}_needs})
        target_include_directories(${name} PRIVATE src)
        target_link_libraries(${name} PRIVATE calyx_objects)
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        set_target_properties(${name} PROPERTIES C_EXTENSIONS ON)
    endforeach()
endif()
