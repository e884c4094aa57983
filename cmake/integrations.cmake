# Calyx within other programs: built and tested where those are installed.

# An extension of SQLite, to be loaded: build/calyx_sqlite.so, with the library in it.
find_path(SQLITE_INCLUDE sqlite3ext.h)
if(NOT SQLITE_INCLUDE)
    message(NOTICE "no header of SQLite here, so no integrations/sqlite")
elseif(NOT CALYX_SANITIZE) # SQLite itself is not built so
    add_library(calyx_sqlite MODULE integrations/sqlite/extension.c)
    target_include_directories(calyx_sqlite SYSTEM PRIVATE ${SQLITE_INCLUDE})
    target_link_libraries(calyx_sqlite PRIVATE calyx_static Threads::Threads)
    target_link_options(calyx_sqlite PRIVATE -Wl,--exclude-libs,ALL)
    set_target_properties(calyx_sqlite PROPERTIES PREFIX "" C_EXTENSIONS ON)
    install(TARGETS calyx_sqlite LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/calyx)
endif()

find_path(LEVELDB_INCLUDE leveldb/c.h)
find_library(LEVELDB_LIBRARY leveldb)
if(NOT LEVELDB_INCLUDE OR NOT LEVELDB_LIBRARY)
    message(NOTICE "no LevelDB here, so no integrations/leveldb")
    return()
endif()

add_library(calyx_leveldb STATIC integrations/leveldb/policy.c)
target_include_directories(calyx_leveldb
    PUBLIC integrations/leveldb ${LEVELDB_INCLUDE})
target_link_libraries(calyx_leveldb PUBLIC calyx_static)

# Beside LevelDB's own policy: its C++ interface, and so a C++ compiler.
include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
    enable_language(CXX)
    add_executable(calyx-bench-small EXCLUDE_FROM_ALL bench/small_filters.cpp)
    target_link_libraries(calyx-bench-small PRIVATE
        calyx_leveldb ${LEVELDB_LIBRARY})
    set_target_properties(calyx-bench-small PROPERTIES
        CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
endif()

add_executable(disk_store examples/disk-store/disk_store.c)
target_link_libraries(disk_store PRIVATE
    calyx_leveldb ${LEVELDB_LIBRARY} ${CMAKE_DL_LIBS})
set_target_properties(disk_store PROPERTIES
    C_EXTENSIONS ON RUNTIME_OUTPUT_DIRECTORY examples)
target_compile_definitions(disk_store PRIVATE _GNU_SOURCE)
