# Programs that use the library as anybody would: the calyx command, examples,
# benchmark, fuzzers.

find_package(Threads REQUIRED)

# What the command and the module both link, compiled once; foreign needs wire.
foreach(name wire foreign)
    file(GLOB sources_of_${name} CONFIGURE_DEPENDS src/${name}/*.c src/${name}/*/*.c)
    add_library(${name}_objects OBJECT EXCLUDE_FROM_ALL ${sources_of_${name}})
    target_include_directories(${name}_objects PRIVATE include src ${XXHASH_INCLUDE})
    set_target_properties(${name}_objects PROPERTIES C_EXTENSIONS ON)
    set(${name} $<TARGET_OBJECTS:${name}_objects>)
endforeach()

# ---- The command -------------------------------------------------------------

file(GLOB tool_sources CONFIGURE_DEPENDS tool/*.c tool/*/*.c)
add_executable(calyx-command ${tool_sources} ${foreign} ${wire})
target_link_libraries(calyx-command PRIVATE calyx_static Threads::Threads m)
target_include_directories(calyx-command PRIVATE tool src ${XXHASH_INCLUDE})
set_target_properties(calyx-command PROPERTIES
    OUTPUT_NAME calyx C_EXTENSIONS ON)
target_compile_definitions(calyx-command PRIVATE _GNU_SOURCE)

# use NAME HEADER LIBRARY LOST: a library that the command can do without, and what
# it then cannot do.
macro(use name header library lost)
    look_for(${name} ${header} ${library})
    if(HAVE_${name})
        target_include_directories(calyx-command PRIVATE ${${name}_INCLUDE})
        target_link_libraries(calyx-command PRIVATE ${${name}_LIBRARY})
        target_compile_definitions(calyx-command PRIVATE CALYX_HAVE_${name}=1)
    else()
        message(NOTICE "the command: no lib${library}, so without ${lost}")
    endif()
endmacro()
use(ZLIB zlib.h z "gzip")
use(ZSTD zstd.h zstd "zstd")
use(HIREDIS hiredis/hiredis.h hiredis "push, pull and check --server")
if(HAVE_HIREDIS)
    use(OPENSSL openssl/ssl.h ssl "rediss:// URLs, which want TLS")
    if(HAVE_OPENSSL)
        find_library(CRYPTO_LIBRARY crypto REQUIRED)
        target_link_libraries(calyx-command PRIVATE ${CRYPTO_LIBRARY})
    endif()
endif()

# libcurl is loaded when a URL is used, by the name that its shared library has.
look_for(CURL curl/curl.h curl)
if(HAVE_CURL)
    execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${CURL_LIBRARY}
        OUTPUT_VARIABLE libcurl ERROR_QUIET)
    string(REGEX MATCH "SONAME +([^ \n]+)" libcurl "${libcurl}")
    set(libcurl ${CMAKE_MATCH_1})
    if(APPLE)
        set(libcurl libcurl.4.dylib)
    endif()
endif()
if(libcurl)
    target_include_directories(calyx-command PRIVATE ${CURL_INCLUDE})
    target_link_libraries(calyx-command PRIVATE ${CMAKE_DL_LIBS})
    target_compile_definitions(calyx-command PRIVATE
        CALYX_HAVE_CURL=1 CALYX_LIBCURL="${libcurl}")
elseif(CALYX_CURL STREQUAL ON)
    message(FATAL_ERROR "CALYX_CURL is ON, but ${CURL_LIBRARY} is not shared")
else()
    message(NOTICE "the command: no shared libcurl, so without filters by URL,"
        " such as check -f https://...")
endif()

# Each verb's help is its manual page.
file(GLOB verb_sources CONFIGURE_DEPENDS tool/*/verb_*.c)
list(TRANSFORM verb_sources REPLACE "^.*/verb_(.*)\\.c$" "\\1"
    OUTPUT_VARIABLE verbs)
set(command_pages man/calyx.1)
list(APPEND page_commands
    COMMAND calyx-command help --man > man/calyx.1)
foreach(verb IN LISTS verbs)
    list(APPEND command_pages man/calyx-${verb}.1)
    list(APPEND page_commands
        COMMAND calyx-command help --man ${verb} > man/calyx-${verb}.1)
endforeach()
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/man)
add_custom_command(OUTPUT ${command_pages} ${page_commands}
    DEPENDS calyx-command VERBATIM)
# By hand with the thread sanitizer, which has each of 22 processes wait a second.
if(NOT CALYX_SANITIZE MATCHES thread)
    set(always ALL)
endif()
add_custom_target(calyx-pages ${always} DEPENDS ${command_pages})

install(TARGETS calyx-command)
list(TRANSFORM command_pages PREPEND ${PROJECT_BINARY_DIR}/)
install(FILES ${command_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

# ---- Examples, benchmark, fuzzers --------------------------------------------

file(GLOB examples CONFIGURE_DEPENDS examples/*.c)
foreach(source IN LISTS examples)
    cmake_path(GET source STEM name)
    list(APPEND example_names ${name})
    add_executable(example_${name} ${source})
    target_link_libraries(example_${name} PRIVATE calyx Threads::Threads m)
    set_target_properties(example_${name} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY examples)
endforeach()
if(HAVE_HIREDIS)
    add_executable(plain_lookup examples/plain-strings/lookup.c)
    target_include_directories(plain_lookup PRIVATE ${HIREDIS_INCLUDE})
    target_link_libraries(plain_lookup PRIVATE calyx_static ${HIREDIS_LIBRARY})
    set_target_properties(plain_lookup PROPERTIES
        C_EXTENSIONS ON RUNTIME_OUTPUT_DIRECTORY examples)
endif()

# What inlines <calyx/inline.h>, for the machine it is built on.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(avx2_option -mavx2)
endif()

# The benchmark takes the peers that are there.
find_library(LIBBLOOM bloom)
include(CheckLanguage)
check_language(CXX)
file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.c)
add_executable(calyx-bench EXCLUDE_FROM_ALL ${bench_sources})
target_include_directories(calyx-bench PRIVATE src ${XXHASH_INCLUDE})
target_link_libraries(calyx-bench PRIVATE calyx Threads::Threads m)
set_target_properties(calyx-bench PROPERTIES C_EXTENSIONS ON)
set_source_files_properties(bench/fuse.c PROPERTIES COMPILE_OPTIONS -O3) # unrolled
set_source_files_properties(bench/inline_view.c PROPERTIES
    COMPILE_OPTIONS "${avx2_option}")
if(LIBBLOOM)
    target_compile_definitions(calyx-bench PRIVATE CALYX_BENCH_LIBBLOOM=1)
    target_link_libraries(calyx-bench PRIVATE ${LIBBLOOM})
endif()
if(CMAKE_CXX_COMPILER)
    enable_language(CXX)
    target_sources(calyx-bench PRIVATE bench/unordered_set.cpp)
    target_compile_definitions(calyx-bench PRIVATE CALYX_BENCH_CXX=1)
    find_path(BOOST_BLOOM_INCLUDE boost/bloom.hpp) # in Boost from 1.89 on
    set(bloom_batches)                             # not in the first of these
    if(BOOST_BLOOM_INCLUDE)
        file(STRINGS ${BOOST_BLOOM_INCLUDE}/boost/bloom/filter.hpp bloom_batches
            REGEX bulk_may_contain_size)
    endif()
    if(bloom_batches)
        target_sources(calyx-bench PRIVATE bench/boost_bloom.cpp)
        target_compile_definitions(calyx-bench PRIVATE CALYX_BENCH_BOOST=1)
        set_source_files_properties(bench/boost_bloom.cpp PROPERTIES
            COMPILE_OPTIONS "-O3;${avx2_option}")
        target_include_directories(calyx-bench
            SYSTEM PRIVATE ${BOOST_BLOOM_INCLUDE})
    endif()
    set_target_properties(calyx-bench PROPERTIES CXX_STANDARD 11)
endif()

add_executable(calyx-lines EXCLUDE_FROM_ALL bench/command/lines.c)
set_target_properties(calyx-lines PROPERTIES C_EXTENSIONS ON)

file(GLOB fuzzers CONFIGURE_DEPENDS fuzz/fuzz_*.c)
set(fuzz_redisbloom_needs ${foreign} ${wire})
set(fuzz_foreign_needs ${foreign} ${wire})
set(fuzz_module_needs test/module/mock_server.c $<TARGET_OBJECTS:module_objects>
    ${foreign} ${wire})
set(fuzz_keys_needs tool/input/fields.c tool/input/json_field.c
    tool/input/records.c)
set(fuzz_keys_options --mutate=2000)
set(fuzz_parts_needs ${wire})
set(fuzz_parts_options --mutate=300)
set(fuzz_module_options --mutate=500)
set(fuzz_pieces_options --mutate=100)
set(fuzz_redisbloom_options --mutate=2000)
set(fuzz_foreign_options --mutate=2000)
if(CALYX_SANITIZE MATCHES fuzzer)
    foreach(source IN LISTS fuzzers)
        cmake_path(GET source STEM name)
        add_executable(${name} ${source} ${${name}_needs})
        target_include_directories(${name} PRIVATE module src tool
            ${XXHASH_INCLUDE})
        target_link_libraries(${name} PRIVATE calyx_objects)
        target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        set_target_properties(${name} PROPERTIES C_EXTENSIONS ON)
    endforeach()
endif()
