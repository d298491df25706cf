# An overlay port: vcpkg install llmbench --overlay-ports=ci/packaging/vcpkg
# llmbench[tls] brings https:// with it, llmbench[simulated] asio, which is needed on macOS alone.
# It installs the tree it stands in, which vcpkg's cache does not look at: after a change, `vcpkg remove
# llmbench` and install with --no-binarycaching. The port of a release, which ci/release.sh makes of this
# one, names its archive and that one's hash here.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(VCPKG_BUILD_TYPE release)  # nothing is compiled
set(VCPKG_FIXUP_ELF_RPATH OFF)  # else patchelf is downloaded, to look at the scripts
vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS FEATURES tls LLMBENCH_WITH_TLS)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS ${FEATURE_OPTIONS})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/llmbench/cmake)
file(MAKE_DIRECTORY "${CURRENT_PACKAGES_DIR}/lib")
# What has a line Libs belongs there; and vcpkg has picojson.h in a folder of its own.
file(RENAME "${CURRENT_PACKAGES_DIR}/share/pkgconfig" "${CURRENT_PACKAGES_DIR}/lib/pkgconfig")
vcpkg_replace_string("${CURRENT_PACKAGES_DIR}/lib/pkgconfig/llmbench.pc"
    [[-I${includedir}]] [[-I${includedir} -I${includedir}/picojson]])
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/licenses")  # it is the copyright file
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/llmbench")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
