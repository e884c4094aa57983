# What is shipped is hardened as Debian's packages are: canaries on the stack,
# probes for large frames, checks in the C library (_FORTIFY_SOURCE), targets of
# indirect calls, addresses that are random, and no table of addresses that stays
# writable. Only what the compiler has, and nothing that the builder's own flags
# speak of, be it to have more of it or none. test/package/hardening looks at what
# was built.

include(CheckCCompilerFlag)
include(CheckLinkerFlag)
include(CheckPIESupported)

set(flags_given "${CMAKE_C_FLAGS} ${${type_flags}}")
set(hardened stack) # what the test is to look for

# harden MEANS FLAG ABOUT: if the compiler has it, and no flag given is about the
# same
macro(harden means flag about)
    check_c_compiler_flag(${flag} CALYX_HAVE_${means})
    if(CALYX_HAVE_${means} AND NOT flags_given MATCHES ${about})
        add_compile_options($<$<COMPILE_LANGUAGE:C>:${flag}>)
        list(APPEND hardened ${means})
    endif()
endmacro()

set(CMAKE_REQUIRED_FLAGS -Werror) # clang warns of flags that a system lacks
harden(canary -fstack-protector-strong stack-protector)
harden(clash -fstack-clash-protection stack-clash)
harden(branch -fcf-protection cf-protection)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(REMOVE_ITEM hardened clash branch) # other code, that it does not know
endif()

# It wants optimisation; some compilers define it by themselves, and a second
# definition would be warned of.
set(CMAKE_TRY_COMPILE_CONFIGURATION ${CMAKE_BUILD_TYPE})
try_compile(fortify SOURCE_FROM_CONTENT fortify.c
    "#if !defined __OPTIMIZE__ || defined _FORTIFY_SOURCE\n#error\n#endif\nint main(void) { return 0; }\n"
    NO_CACHE)
unset(CMAKE_TRY_COMPILE_CONFIGURATION)
if(fortify AND NOT flags_given MATCHES "_FORTIFY_SOURCE")
    add_compile_options($<$<COMPILE_LANGUAGE:C>:-D_FORTIFY_SOURCE=2>)
    list(APPEND hardened fortify)
endif()

check_linker_flag(C -Wl,-z,relro,-z,now CALYX_HAVE_relro)
if(CALYX_HAVE_relro)
    add_link_options(-Wl,-z,relro,-z,now)
    list(APPEND hardened relro)
endif()
if(NOT CMAKE_EXE_LINKER_FLAGS MATCHES "-static|-no-pie")
    check_pie_supported(LANGUAGES C)
    if(CMAKE_C_LINK_PIE_SUPPORTED)
        list(APPEND hardened pie)
    endif()
endif()
