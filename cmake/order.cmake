# The longest tests begin first, lest one of them ends long after all others. Those
# that take 12 seconds or more, in the order of their time on two cores.

set(longest
    web.page web.look module.window+address cli.exact crash module.steps+address
    module.push+address cli.exact+address module.window package.amalgamation
    cli.threads+thread module.steps module.rate example.cluster module.citizen
    module.memory unit.large_file@scalar module.tls+address module.push
    unit.kernels@${best}+address module.tls module.guard+address)
list(LENGTH longest cost)
foreach(test IN LISTS longest)
    if(TEST ${test})
        set_tests_properties(${test} PROPERTIES COST ${cost}000)
    endif()
    math(EXPR cost "${cost} - 1")
endforeach()

# What a user of the command may have set is none of the tests' business.
get_property(tests DIRECTORY PROPERTY TESTS)
foreach(name REDIS_URL REDIS_USER REDIS_PASSWORD TLS_CA TLS_CERT TLS_KEY
        TEST_BUDGET TEST_POOR_HASH)
    set_property(TEST ${tests} APPEND PROPERTY
        ENVIRONMENT_MODIFICATION "CALYX_${name}=unset:")
endforeach()
