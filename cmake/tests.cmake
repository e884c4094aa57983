# The tests, as ctest sees them. Names read unit.model@avx2: the program, and
# the processor level it is held to by CALYX_KERNEL. A sanitized build adds its
# sanitizer, unit.model@avx2+address, and the thread sanitizer runs the thread
# tests alone.

enable_testing()
set(CMAKE_C_EXTENSIONS ON) # the tests, unlike the library, take POSIX for granted
find_package(Threads REQUIRED)
find_path(CMOCKA_INCLUDE cmocka.h REQUIRED)
find_library(CMOCKA_LIBRARY cmocka REQUIRED)

string(REGEX MATCH "address|thread" sanitizer "${CALYX_SANITIZE}")
if(sanitizer)
    set(suffix "+${sanitizer}")
endif()
# The thread sanitizer has a process that ends wait for what threads may still do,
# a second by default; the command always has one that waits for
# signals.
set(sanitizer_options
    ASAN_OPTIONS=${asan_options}
    TSAN_OPTIONS=allocator_may_return_null=1:halt_on_error=1:atexit_sleep_ms=50)

# ---- The processor's levels, as the library sees them ----------------------

try_run(levels_status levels_compiled
    SOURCES ${PROJECT_SOURCE_DIR}/cmake/levels.c
            ${PROJECT_SOURCE_DIR}/src/base/cpu.c
    CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${PROJECT_SOURCE_DIR}/include\\;${PROJECT_SOURCE_DIR}/src"
    COMPILE_OUTPUT_VARIABLE levels_log
    RUN_OUTPUT_VARIABLE levels)
if(NOT levels)
    message(FATAL_ERROR "cannot detect the processor's levels:\n${levels_log}")
endif()

set(not_run avx2 avx512)
list(REMOVE_ITEM not_run ${levels})
list(TRANSFORM not_run REPLACE
    "(.+)" "not run here: \\1 (this processor has none)\n")
string(CONCAT not_run ${not_run})
file(WRITE ${PROJECT_BINARY_DIR}/not-run "${not_run}")

list(GET levels 0 best)
# What compares the kernels by itself, or is about something else, runs at one
# level alone; so does all under the address sanitizer, for which unit.kernels has
# every kernel. The thread sanitizer does not see into vector kernels.
set(one_level abilities allow_list bad_input bits builder builder_faults codec damage
    dump failing_memory faults file file_layout foreign kernels layout_line map
    memory_left parts patience pieces plan properties ranges thread_allow
    thread_builder thread_live thread_ranges)
if(sanitizer STREQUAL address)
    set(levels ${best})
elseif(sanitizer STREQUAL thread)
    set(levels scalar)
endif()
list(GET levels 0 first)

# repeated TEST...: the address sanitizer runs them as well, so without it they
# are left to `make check`. Not what does less under the sanitizer.
function(repeated)
    if(NOT sanitizer)
        set_property(TEST ${ARGN} APPEND PROPERTY LABELS repeated)
    endif()
endfunction()

# ---- Unit tests, once for each level ---------------------------------------

file(GLOB unit_tests CONFIGURE_DEPENDS test/unit/*.c)
list(FILTER unit_tests EXCLUDE REGEX "/support")
add_library(unit_support STATIC test/unit/support.c test/unit/support_files.c
    test/unit/support_tables.c)
target_include_directories(unit_support PRIVATE
    include src ${XXHASH_INCLUDE} ${CMOCKA_INCLUDE})

set_source_files_properties(test/unit/inline_view.c test/unit/twins.c PROPERTIES
    COMPILE_OPTIONS "${avx2_option}")
set(unit_dump_needs ${wire})
set(unit_memory_left_needs tool/frame/memory_left.c)
set(unit_patience_needs tool/http/patience.c)
set(unit_foreign_needs ${foreign} ${wire})
set(unit_layout_line_needs ${foreign} ${wire})
foreach(source IN LISTS unit_tests)
    cmake_path(GET source STEM name)
    string(REGEX MATCH "^thread" threads ${name})
    if(sanitizer STREQUAL thread AND NOT threads)
        continue()
    endif()

    add_executable(unit_${name} ${source} ${unit_${name}_needs})
    target_include_directories(unit_${name} PRIVATE
        src tool test/unit ${XXHASH_INCLUDE} ${CMOCKA_INCLUDE})
    target_link_libraries(unit_${name} PRIVATE
        unit_support calyx_objects Threads::Threads m ${CMOCKA_LIBRARY})
    set_target_properties(unit_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY test)

    file(STRINGS ${source} less_sanitized REGEX SANITIZED LIMIT_COUNT 1)
    set(its_levels ${levels})
    if(name IN_LIST one_level)
        set(its_levels ${first})
    endif()
    foreach(level IN LISTS its_levels)
        set(test unit.${name}@${level}${suffix})
        add_test(NAME ${test} COMMAND unit_${name})
        set_tests_properties(${test} PROPERTIES
            ENVIRONMENT "CALYX_KERNEL=${level};${sanitizer_options}")
        if(threads)
            set_tests_properties(${test} PROPERTIES LABELS threads PROCESSORS 2)
        elseif(level STREQUAL best AND NOT less_sanitized AND NOT name STREQUAL kernels)
            repeated(${test}) # except the kernels, as they are shipped
        endif()
    endforeach()
endforeach()

# ---- The command -----------------------------------------------------------

# Tests that ask is_sanitized, and then do less, have the tag `full`: these alone
# run without a sanitizer, too. cli.tags finds those that lack it.
find_program(BATS bats REQUIRED)
file(GLOB cli_tests CONFIGURE_DEPENDS test/cli/*.bats)
foreach(source IN LISTS cli_tests)
    cmake_path(GET source STEM name)
    if(sanitizer STREQUAL thread AND NOT name MATCHES "^thread")
        continue()
    endif()
    set(test cli.${name}${suffix})
    add_test(NAME ${test} COMMAND ${BATS} ${source})
    set_tests_properties(${test} PROPERTIES ENVIRONMENT
        "CALYX=$<TARGET_FILE:calyx-command>;${sanitizer_options}")
    repeated(${test})
    file(STRINGS ${source} full REGEX "_tags=full$" LIMIT_COUNT 1)
    if(full AND NOT sanitizer)
        add_test(NAME ${test}.full COMMAND ${BATS} --filter-tags full ${source})
        set_tests_properties(${test}.full PROPERTIES ENVIRONMENT
            "CALYX=$<TARGET_FILE:calyx-command>")
    endif()
endforeach()

if(NOT sanitizer)
    add_test(NAME cli.tags COMMAND awk -f ${PROJECT_SOURCE_DIR}/test/cli/tags.awk ${cli_tests})
endif()

# ---- The inner loop: make quick ---------------------------------------------

# Unit tests at the best level, except those that take seconds, and the tests of
# the command's frame. The target builds what they need.
if(NOT sanitizer)
    set(slow_units bucket builder builder_faults damage file growth kernels large
        large_file map model parts plan rate thread_add thread_builder thread_live)
    set(quick_targets calyx-command)
    foreach(source IN LISTS unit_tests)
        cmake_path(GET source STEM name)
        if(NOT name IN_LIST slow_units)
            set_property(TEST unit.${name}@${best} APPEND PROPERTY LABELS quick)
            list(APPEND quick_targets unit_${name})
        endif()
    endforeach()
    foreach(name frame keys info plan)
        set_property(TEST cli.${name} APPEND PROPERTY LABELS quick)
    endforeach()
    add_custom_target(quick DEPENDS ${quick_targets})
endif()

# ---- LevelDB's filter policy -------------------------------------------------

# test_leveldb NAME OPTIONS...: of test/integrations, to be linked so.
function(test_leveldb name)
    add_executable(integration_${name} test/integrations/${name}.c
        integrations/leveldb/policy.c)
    target_include_directories(integration_${name} PRIVATE
        src test/unit integrations/leveldb ${CMOCKA_INCLUDE} ${LEVELDB_INCLUDE})
    target_link_libraries(integration_${name} PRIVATE
        unit_support calyx_objects Threads::Threads m ${CMOCKA_LIBRARY}
        ${ARGN})
    set_target_properties(integration_${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY test)
    add_test(NAME integration.${name}${suffix} COMMAND integration_${name})
    set_tests_properties(integration.${name}${suffix} PROPERTIES
        ENVIRONMENT "${sanitizer_options}")
    repeated(integration.${name}${suffix})
endfunction()

if(LEVELDB_LIBRARY)
    test_leveldb(leveldb -Wl,--wrap=calyx_new)
    if(NOT sanitizer STREQUAL thread) # LevelDB itself is not built so
        test_leveldb(leveldb_files ${LEVELDB_LIBRARY})
    endif()
else()
    file(APPEND ${PROJECT_BINARY_DIR}/not-run
        "not run here: integrations/leveldb (there is no LevelDB)\n")
endif()

if(sanitizer STREQUAL thread)
    return()
endif()

# ---- The examples check themselves ------------------------------------------

foreach(name IN LISTS example_names)
    add_test(NAME example.${name}${suffix} COMMAND example_${name})
    set_tests_properties(example.${name}${suffix} PROPERTIES
        ENVIRONMENT "${sanitizer_options}")
endforeach()

# ---- RedisBloom's layout, against a script that was written apart from it ---

find_program(PYTHON3 python3 REQUIRED)
set(layout module.redisbloom_layout${suffix})
set(layout_data ${PROJECT_BINARY_DIR}/test/redisbloom)
add_executable(redisbloom_layout
    test/module/test_redisbloom_layout.c ${foreign} ${wire})
target_include_directories(redisbloom_layout PRIVATE
    module src test/unit ${CMOCKA_INCLUDE})
target_link_libraries(redisbloom_layout PRIVATE
    unit_support calyx_objects Threads::Threads m ${CMOCKA_LIBRARY})
set_target_properties(redisbloom_layout PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY test)
add_test(NAME ${layout}.data COMMAND ${PYTHON3}
    ${PROJECT_SOURCE_DIR}/test/module/redisbloom_data.py ${layout_data})
add_test(NAME ${layout} COMMAND redisbloom_layout ${layout_data})
set_tests_properties(${layout}.data PROPERTIES FIXTURES_SETUP ${layout})
set_tests_properties(${layout} PROPERTIES FIXTURES_REQUIRED ${layout}
    ENVIRONMENT "${sanitizer_options}")

# ---- What a fuzzer found once stays repaired -------------------------------

foreach(source IN LISTS fuzzers)
    cmake_path(GET source STEM name)
    string(REPLACE fuzz_ "" name ${name})
    add_executable(replay_${name}
        ${source} fuzz/replay.c ${fuzz_${name}_needs})
    target_include_directories(replay_${name} PRIVATE
        module src tool ${XXHASH_INCLUDE})
    target_compile_definitions(replay_${name} PRIVATE _GNU_SOURCE)
    target_link_libraries(replay_${name} PRIVATE calyx_objects Threads::Threads m)
    set_target_properties(replay_${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY test)
    add_test(NAME fuzz.${name}${suffix}
        COMMAND replay_${name} ${fuzz_${name}_options}
            ${PROJECT_SOURCE_DIR}/fuzz/corpus/${name})
    set_tests_properties(fuzz.${name}${suffix} PROPERTIES
        ENVIRONMENT "${sanitizer_options}")
    repeated(fuzz.${name}${suffix})
endforeach()

if(sanitizer)
    return()
endif()

# ---- The stories of examples/, each on servers and files of its own ----------

# story NAME COMMAND...: with thousands of keys, where by hand there are millions.
function(story name)
    add_test(NAME example.${name} COMMAND ${ARGN})
    set_tests_properties(example.${name} PROPERTIES ENVIRONMENT
        "CALYX=$<TARGET_FILE:calyx-command>;CALYX_LIBRARY=$<TARGET_FILE:calyx>;\
CALYX_MODULE=$<TARGET_FILE:calyx_module>;PYTHONDONTWRITEBYTECODE=1")
endfunction()

set(stories ${PROJECT_SOURCE_DIR}/examples)
story(spell ${stories}/spell/spell)
story(cache-guard ${stories}/cache-guard/run 10000 3000)
story(cluster ${stories}/cluster/run 50000 5000)
story(nightly-whitelist ${stories}/nightly-whitelist/run 100000)
story(crawler ${stories}/crawler/run 1000 20)
story(spam ${stories}/spam/run 200000 100000)
story(shared-users ${stories}/shared-users/run 100000)
story(buckets ${stories}/buckets/run 20000 10000)
find_program(PARALLEL parallel)
find_program(SSHD sshd PATHS /usr/sbin)
find_program(RSYNC rsync)
if(PARALLEL AND SSHD AND RSYNC)
    story(distributed ${stories}/distributed/run 60000)
else()
    file(APPEND ${PROJECT_BINARY_DIR}/not-run
        "not run here: examples/distributed (it needs parallel, sshd and rsync)\n")
endif()
find_program(SLURMCTLD slurmctld PATHS /usr/sbin)
find_program(MUNGED munged PATHS /usr/sbin)
if(SLURMCTLD AND MUNGED)
    story(slurm ${stories}/slurm/run 2000000)
    add_test(NAME cluster.slurm COMMAND /usr/bin/python3 -m pytest -q -p no:cacheprovider
        ${PROJECT_SOURCE_DIR}/test/cluster/test_slurm.py)
    set_tests_properties(cluster.slurm PROPERTIES ENVIRONMENT
        "CALYX=$<TARGET_FILE:calyx-command>;PYTHONDONTWRITEBYTECODE=1")
else()
    file(APPEND ${PROJECT_BINARY_DIR}/not-run
        "not run here: integrations/slurm and examples/slurm (they need slurm-wlm)\n")
endif()
story(browser ${stories}/browser/run 100000 300)
set_tests_properties(example.browser PROPERTIES SKIP_RETURN_CODE 77 FIXTURES_REQUIRED web)
set_property(TEST example.browser APPEND PROPERTY ENVIRONMENT
    "CALYX_PACKAGE=${PROJECT_BINARY_DIR}/web/modules/calyx")
if(TARGET calyx_sqlite)
    story(semi-join ${stories}/semi-join/run 50000)
    add_test(NAME integration.sqlite COMMAND
        ${BATS} ${PROJECT_SOURCE_DIR}/test/integrations/sqlite.bats)
    set_property(TEST example.semi-join integration.sqlite APPEND PROPERTY ENVIRONMENT
        "CALYX=$<TARGET_FILE:calyx-command>;CALYX_SQLITE=$<TARGET_FILE:calyx_sqlite>")
else()
    file(APPEND ${PROJECT_BINARY_DIR}/not-run
        "not run here: integrations/sqlite (there is no header of SQLite)\n")
endif()
if(TARGET plain_lookup)
    story(plain-strings ${stories}/plain-strings/run 100000
        $<TARGET_FILE:plain_lookup>)
endif()
if(LEVELDB_LIBRARY)
    story(disk-store ${stories}/disk-store/run 50000 $<TARGET_FILE:disk_store>)
endif()

# ---- Adding without locks must lose keys -------------------------------------

add_executable(lost_keys_control test/control/lost_keys.c src/engine/stripes.c
    "$<FILTER:$<TARGET_OBJECTS:calyx_objects>,EXCLUDE,/stripes\\.c>")
target_compile_definitions(lost_keys_control PRIVATE CALYX_NO_STRIPE_LOCKS=1)
target_include_directories(lost_keys_control PRIVATE
    include src ${XXHASH_INCLUDE})
target_link_libraries(lost_keys_control PRIVATE Threads::Threads m)
set_target_properties(lost_keys_control PROPERTIES RUNTIME_OUTPUT_DIRECTORY test)
add_test(NAME control.lost_keys COMMAND lost_keys_control)
set_tests_properties(control.lost_keys PROPERTIES PROCESSORS 2)

# ---- Room is claimed in one step: see test/control/claim_room.c --------------

add_executable(claim_room test/control/claim_room.c
    "$<FILTER:$<TARGET_OBJECTS:calyx_objects>,EXCLUDE,/chain_engine\\.c\\.o$>")
target_include_directories(claim_room PRIVATE include src ${XXHASH_INCLUDE})
target_link_libraries(claim_room PRIVATE Threads::Threads m)
set_target_properties(claim_room PROPERTIES RUNTIME_OUTPUT_DIRECTORY test)
add_test(NAME control.claim_room COMMAND claim_room)

# ---- Killed at any moment, a file is whole ---------------------------------

find_program(STRACE strace REQUIRED)
add_executable(crash_saver test/crash/saver.c)
target_link_libraries(crash_saver PRIVATE calyx_static)
add_library(crash_shim MODULE test/crash/shim.c)
target_link_libraries(crash_shim PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(crash_saver crash_shim PROPERTIES
    C_EXTENSIONS ON C_VISIBILITY_PRESET default
    RUNTIME_OUTPUT_DIRECTORY test LIBRARY_OUTPUT_DIRECTORY test)
add_test(NAME crash COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/test/crash/crash.py
    $<TARGET_FILE:crash_saver> $<TARGET_FILE:crash_shim>)

# The command, with each of its system calls failing in turn; all of them with
# CALYX_LONG.
add_test(NAME crash.faults COMMAND ${PYTHON3}
    ${PROJECT_SOURCE_DIR}/test/crash/faults.py $<TARGET_FILE:calyx-command>)
set_tests_properties(crash.faults PROPERTIES PROCESSORS 2 TIMEOUT 1800
    ENVIRONMENT "CALYX_MODULE=$<TARGET_FILE:calyx_module>;PYTHONDONTWRITEBYTECODE=1")

# The same options come to the same sizes everywhere, and the same keys to the
# same bytes; dev/check-platforms runs these elsewhere.
set(portable ${PROJECT_SOURCE_DIR}/test/portable)
foreach(name plans filters)
    add_executable(portable_${name} test/portable/${name}.c)
    target_include_directories(portable_${name} PRIVATE include/calyx)
    target_link_libraries(portable_${name} PRIVATE calyx_static Threads::Threads)
    set_target_properties(portable_${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY test)
    add_test(NAME portable.${name} COMMAND ${portable}/compare
        ${portable}/${name}.txt $<TARGET_FILE:portable_${name}>)
endforeach()

# Makes the files of test/golden; kept compiling, and run by hand.
add_executable(golden_make test/golden/make.c)
target_link_libraries(golden_make PRIVATE calyx_static)
set_target_properties(golden_make PROPERTIES
    C_EXTENSIONS ON RUNTIME_OUTPUT_DIRECTORY test)

# ---- The page, in a real browser --------------------------------------------

# No REQUIRED here: without node the tests are there, and fail. Where npm's
# registry is out of reach, ctest ends by saying that they were skipped.
find_program(NODE NAMES node nodejs)
set(web ${PROJECT_BINARY_DIR}/web)
set(npm ${PROJECT_BINARY_DIR}/npm)
add_test(NAME node.build COMMAND ${PROJECT_SOURCE_DIR}/node/build ${npm})
set_tests_properties(node.build PROPERTIES FIXTURES_SETUP npm
    SKIP_RETURN_CODE 77 ENVIRONMENT "XXHASH_INCLUDE=${XXHASH_INCLUDE}")
add_test(NAME web.build COMMAND ${PROJECT_SOURCE_DIR}/web/build ${web})
set_tests_properties(web.build PROPERTIES FIXTURES_SETUP web FIXTURES_REQUIRED npm
    ENVIRONMENT "CALYX_NPM=${npm}")
# Three parts, which take about as long; page has what the others have not.
set(web_look look)
set(web_file firefox inspect kernels remote)
file(GLOB web_page CONFIGURE_DEPENDS test/web/*.mjs)
list(TRANSFORM web_page REPLACE ".*/(.*)\\.mjs" "\\1")
list(REMOVE_ITEM web_page run support range_server ${web_look} ${web_file})
foreach(name look file page)
    add_test(NAME web.${name} COMMAND
        ${NODE} ${PROJECT_SOURCE_DIR}/test/web/run.mjs ${web_${name}})
    set_tests_properties(web.${name} PROPERTIES FIXTURES_REQUIRED web
        SKIP_RETURN_CODE 77
        ENVIRONMENT "CALYX=$<TARGET_FILE:calyx-command>;CALYX_WEB=${web}")
endforeach()
set_tests_properties(web.build PROPERTIES SKIP_RETURN_CODE 77)

# The npm package, which needs no registry.
add_test(NAME node.package COMMAND ${PROJECT_SOURCE_DIR}/test/node/run ${npm})
set_tests_properties(node.package PROPERTIES FIXTURES_REQUIRED npm
    SKIP_RETURN_CODE 77 ENVIRONMENT "CALYX=$<TARGET_FILE:calyx-command>")

# ---- Translations have the commands and figures of the original; links have ends

add_test(NAME docs.readme COMMAND ${PYTHON3}
    ${PROJECT_SOURCE_DIR}/test/docs/readme.py
    ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/README.zh-CN.md)
foreach(page doc/MATH examples/cache-guard/README examples/nightly-whitelist/README
        examples/buckets/README)
    string(REGEX REPLACE "/README$" "" name ${page})
    get_filename_component(name ${name} NAME)
    add_test(NAME docs.translation.${name} COMMAND ${PYTHON3}
        ${PROJECT_SOURCE_DIR}/test/docs/readme.py
        ${PROJECT_SOURCE_DIR}/${page}.md ${PROJECT_SOURCE_DIR}/${page}.zh-CN.md)
endforeach()
add_test(NAME docs.paths COMMAND ${PYTHON3}
    ${PROJECT_SOURCE_DIR}/test/docs/paths.py ${PROJECT_SOURCE_DIR})
add_test(NAME docs.plans COMMAND ${PYTHON3}
    ${PROJECT_SOURCE_DIR}/test/docs/plans.py ${portable}/plans.txt)
add_test(NAME docs.math COMMAND ${PYTHON3}
    ${PROJECT_SOURCE_DIR}/test/docs/math.py $<TARGET_FILE:calyx-command>
    ${PROJECT_SOURCE_DIR}/doc/MATH.md)
add_test(NAME docs.others COMMAND ${PYTHON3}
    ${PROJECT_SOURCE_DIR}/test/docs/others.py $<TARGET_FILE:calyx-command>
    ${PROJECT_SOURCE_DIR}/doc/OTHERS.md)
add_test(NAME docs.kinds COMMAND ${PYTHON3}
    ${PROJECT_SOURCE_DIR}/test/docs/kinds.py $<TARGET_FILE:calyx-command>
    ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/README.zh-CN.md
    ${PROJECT_SOURCE_DIR}/doc/KINDS.md)
add_test(NAME docs.length COMMAND ${PYTHON3}
    ${PROJECT_SOURCE_DIR}/test/docs/length.py ${PROJECT_SOURCE_DIR}/README.md 1600)
add_test(NAME docs.skipped COMMAND ${PYTHON3}
    ${PROJECT_SOURCE_DIR}/test/docs/skipped.py
    ${PROJECT_SOURCE_DIR}/dev/list-skipped)

# ---- What people get -------------------------------------------------------

add_test(NAME package.install
    COMMAND ${PROJECT_SOURCE_DIR}/test/package/install ${PROJECT_BINARY_DIR})
if(hardened)
    add_test(NAME package.hardening COMMAND
        ${PROJECT_SOURCE_DIR}/test/package/hardening ${PROJECT_BINARY_DIR} ${hardened})
endif()
add_test(NAME package.amalgamation
    COMMAND ${PROJECT_SOURCE_DIR}/test/package/amalgamation)
add_test(NAME package.switches
    COMMAND ${PROJECT_SOURCE_DIR}/test/package/switches)
add_test(NAME package.cplusplus
    COMMAND ${PROJECT_SOURCE_DIR}/test/package/cplusplus ${PROJECT_BINARY_DIR})
add_test(NAME package.abi COMMAND ${PYTHON3}
    ${PROJECT_SOURCE_DIR}/test/package/abi ${PROJECT_BINARY_DIR} ${CMAKE_C_COMPILER})
get_target_property(libraries calyx-command LINK_LIBRARIES)
list(REMOVE_ITEM libraries calyx_static)
add_executable(command_on_shared $<TARGET_OBJECTS:calyx-command> ${foreign} ${wire})
target_link_libraries(command_on_shared PRIVATE calyx ${libraries})
set_target_properties(command_on_shared PROPERTIES
    LINKER_LANGUAGE C SKIP_BUILD_RPATH ON RUNTIME_OUTPUT_DIRECTORY test)
add_test(NAME package.kind COMMAND ${PROJECT_SOURCE_DIR}/test/package/kind
    $<TARGET_FILE:command_on_shared> $<TARGET_OBJECTS:calyx_objects>
    COMMAND_EXPAND_LISTS)
