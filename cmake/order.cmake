# The longest tests begin first, lest one of them ends long after all others.

set(longest
    web.page cli.exact cli.streams crash unit.large_file@scalar module.citizen
    module.window package.amalgamation package.install
    cli.exact+address module.push+address module.window+address
    module.fuzz+address
    cli.threads+thread)
foreach(test IN LISTS longest)
    if(TEST ${test})
        set_tests_properties(${test} PROPERTIES COST 1000)
    endif()
endforeach()

# What a user of the command may have set is none of the tests' business.
get_property(tests DIRECTORY PROPERTY TESTS)
foreach(name REDIS_URL REDIS_USER REDIS_PASSWORD TLS_CA TLS_CERT TLS_KEY
        TEST_BUDGET TEST_POOR_HASH)
    set_property(TEST ${tests} APPEND PROPERTY
        ENVIRONMENT_MODIFICATION "CALYX_${name}=unset:")
endforeach()
