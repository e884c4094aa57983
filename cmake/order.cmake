# The longest tests begin first, lest one of them ends long after all others: those
# that take 10 seconds or more, after what the longest wait for.

set(longest
    node.build web.build web.look web.page web.file cli.exact.full package.amalgamation
    module.steps+address crash.faults module.window+address module.push+address
    cli.exact+address cli.http+address cli.threads+thread go.binding python.package
    cli.build+address crash cli.damage+address module.fuzz+address module.window
    module.tls+address unit.kernels@${best}+address module.citizen module.rate
    module.memory package.install unit.growth@${best}+address unit.plan@${best}+address
    example.cluster example.distributed module.push)
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
