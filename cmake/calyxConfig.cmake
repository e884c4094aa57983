include("${CMAKE_CURRENT_LIST_DIR}/calyxTargets.cmake")
