"""llmbench as a Conan 2 package: conan create ci/packaging -s compiler.cppstd=20 [-o "llmbench/*:with_tls=True"]

with_simulated brings asio, which is needed on macOS alone.

The recipe exports the tree it stands in and installs it with its own CMake; beside a conandata.yml,
as ci/release.sh makes one, it takes the archive that this names. Versions of the three
libraries begin where this project is tested, asio's apart: Conan Center has no 1.22.
"""
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain
from conan.tools.files import copy, get, load


class LlmbenchConan(ConanFile):
    name = "llmbench"
    description = "Performance gates for LLM inference servers, written like unit tests"
    license = "MIT"
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"with_tls": [True, False], "with_simulated": [True, False]}
    default_options = {"with_tls": False, "with_simulated": False}
    no_copy_source = True

    @property
    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        if self.conan_data:
            self.version = next(iter(self.conan_data["sources"]))
            return
        header = load(self, os.path.join(self._root, "llmbench.hpp"))
        *numbers, pre = re.findall(r'#define LLMBENCH_VERSION_\w+ "?([^"\s]*)', header)
        self.version = ".".join(numbers) + (f"-{pre}" if pre else "")

    def export_sources(self):
        if self.conan_data:
            return
        for pattern in ("llmbench.hpp", "extensions/*.hpp", "CMakeLists.txt", "LICENSE", "ci/packaging/llmbench*"):
            copy(self, pattern, self._root, self.export_sources_folder)

    def source(self):
        if self.conan_data:
            get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def requirements(self):
        if self.options.with_simulated or self.settings.os != "Linux":
            self.requires("asio/[>=1.28 <2]")
        self.requires("doctest/[>=2.4.9 <3]")
        self.requires("picojson/[>=1.3.0 <2]")
        if self.options.with_tls:
            self.requires("openssl/[>=1.1.1 <4]")

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["LLMBENCH_WITH_TLS"] = "ON" if self.options.with_tls else "OFF"
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_id(self):
        self.info.settings.clear()  # nothing is compiled; the options make another package
        self.info.requires.clear()

    def package_info(self):
        # The CMake files that were installed are the package; Conan writes none beside them.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append(os.path.join("share", "llmbench", "cmake"))
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
