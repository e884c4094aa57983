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
