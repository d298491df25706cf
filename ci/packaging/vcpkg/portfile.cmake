# An overlay port: vcpkg install llmbench --overlay-ports=ci/packaging/vcpkg
# llmbench[tls] brings https:// with it.
# It installs the tree it stands in. A port of a registry has vcpkg_from_github() here, with the
# hash of a release; there is no release to name yet, so no hash is made up.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(VCPKG_BUILD_TYPE release)  # nothing is compiled
vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS FEATURES tls LLMBENCH_WITH_TLS)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS ${FEATURE_OPTIONS}
    -DLLMBENCH_BUILD_TESTS=OFF -DLLMBENCH_BUILD_EXAMPLES=OFF -DLLMBENCH_BUILD_TOOLS=OFF
    -DLLMBENCH_BUILD_BENCH=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/llmbench)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/llmbench.hpp")  # the licence is in its banner
