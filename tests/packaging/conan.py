"""Runs the Conan recipe with stand-ins for what Conan offers to one, from its exported sources alone.

  conan.py RECIPE PACKAGE_FOLDER yes|no VERSION          with all options or with none
"""
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import types
import urllib.request

recipe, package, tls = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3] == "yes"


class ConanFile:
    recipe_folder = os.path.dirname(recipe)
    source_folder = export_sources_folder = package + "-source"
    conan_data = None
    build_folder = package + "-build"
    package_folder = package

    def __init__(self, system="Linux"):
        chosen = dict(self.default_options, with_tls=tls, with_simulated=tls)
        self.settings = types.SimpleNamespace(os=system)
        assert all(value in self.options[name] for name, value in chosen.items())
        self.options = types.SimpleNamespace(**chosen)
        self.required = []
        self.requires = self.required.append
        self.cpp_info = types.SimpleNamespace(set_property=lambda *_: None, builddirs=[])


class CMakeToolchain:
    def __init__(self, conanfile):
        self.conanfile, self.cache_variables = conanfile, {}

    def generate(self):
        self.conanfile.cache_variables = self.cache_variables


class CMakeDeps(CMakeToolchain):
    def generate(self):
        pass


class CMake:
    def __init__(self, conanfile):
        self.of = conanfile

    def run(self, *arguments):
        subprocess.run([os.environ.get("CMAKE", "cmake"), *arguments], check=True,
                       stdout=subprocess.DEVNULL)

    def configure(self):
        self.run("-S", self.of.source_folder, "-B", self.of.build_folder,
                 f"-DCMAKE_INSTALL_PREFIX={self.of.package_folder}", "-DCMAKE_INSTALL_LIBDIR=lib",
                 "-DCMAKE_CXX_COMPILER_WORKS=ON",
                 *(f"-D{k}={v}" for k, v in self.of.cache_variables.items()))

    def install(self):
        self.run("--install", self.of.build_folder)


def copy(_, pattern, source, destination):
    found = glob.glob(pattern, root_dir=source)
    assert found, f"nothing matches {pattern}"
    for name in found:
        os.makedirs(os.path.dirname(os.path.join(destination, name)), exist_ok=True)
        shutil.copy2(os.path.join(source, name), os.path.join(destination, name))


def get(conanfile, url, sha256, strip_root):
    with urllib.request.urlopen(url) as f:
        archive = f.read()
    assert strip_root and hashlib.sha256(archive).hexdigest() == sha256
    file = package + ".tar.gz"
    with open(file, "wb") as f:
        f.write(archive)
    with tarfile.open(file) as tar:
        tar.extractall(package + "-archive")
    os.rename(*glob.glob(package + "-archive/*"), conanfile.source_folder)


def load(_, file):
    with open(file, encoding="utf-8") as f:
        return f.read()


for name, members in {
        "conan": {"ConanFile": ConanFile}, "conan.tools": {},
        "conan.tools.build": {"check_min_cppstd": lambda _, least: None},
        "conan.tools.cmake": {"CMake": CMake, "CMakeDeps": CMakeDeps,
                              "CMakeToolchain": CMakeToolchain},
        "conan.tools.files": {"copy": copy, "get": get, "load": load}}.items():
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)
namespace = {"__name__": "recipe"}
exec(compile(load(None, recipe), recipe, "exec"), namespace)
it = namespace["LlmbenchConan"]()
data = os.path.join(os.path.dirname(recipe), "conandata.yml")
if os.path.exists(data):
    import yaml
    it.conan_data = yaml.safe_load(load(None, data))
for step in ("set_version", "export_sources", "source", "requirements", "generate", "build", "package",
             "package_info"):
    getattr(it, step)()
assert it.version == sys.argv[4], it.version
names = sorted(r.partition("/")[0] for r in it.required)
assert names == ["asio"] * tls + ["doctest"] + ["openssl"] * tls + ["picojson"], names
on_a_mac = namespace["LlmbenchConan"]("Macos")
on_a_mac.requirements()
assert any(r.startswith("asio/") for r in on_a_mac.required), on_a_mac.required
assert all(os.path.isdir(os.path.join(package, d)) for d in it.cpp_info.builddirs)
