# The tests of the binding for Go: go/ says more. Go builds it; where there is no
# Go, ctest says that they were skipped.

if(CALYX_SANITIZE OR NOT CALYX_TESTS)
    return()
endif()
add_test(NAME go.binding COMMAND
    ${PROJECT_SOURCE_DIR}/test/go/run ${PROJECT_BINARY_DIR})
set_tests_properties(go.binding PROPERTIES SKIP_RETURN_CODE 77
    ENVIRONMENT "CALYX=$<TARGET_FILE:calyx-command>")
