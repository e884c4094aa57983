"""Builds the wheel and the source package, as PEP 517 wants it, with nothing but
Python and a C compiler: the binding and the library, which is one C file then,
become one extension module for the stable ABI.

    pip install .            pip wheel .
"""
import base64
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MODULE = "calyx/_calyx.abi3.so"
SOURCES = sorted((HERE / "calyx").glob("*.[ch]"))
PACKAGE = ["calyx/__init__.py", "calyx/__init__.pyi", "calyx/plain.py", "calyx/dask.py",
           "calyx/parts.py", "calyx/py.typed"]


def library(folder):
    """calyx.c and calyx.h: the files of the source package, or made of the tree."""
    to = Path(folder) / "calyx"
    packed = HERE / "library"
    if packed.is_dir():
        shutil.copytree(packed, to)
    else:
        subprocess.run([sys.executable, ROOT / "dev" / "amalgamate", to],
                       check=True, stdout=subprocess.DEVNULL)
    return to


def version(header):
    parts = [re.search(rf"CALYX_VERSION_{part} (\d+)", header)[1]
             for part in ("MAJOR", "MINOR", "PATCH")]
    return ".".join(parts)


def compile_module(folder, to):
    command = [*os.environ.get("CC", "cc").split(), "-std=gnu11", "-O2",
               "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden",
               *os.environ.get("CFLAGS", "").split(),
               "-I", folder, "-I", sysconfig.get_path("include"),
               *(file for file in SOURCES if file.suffix == ".c"),
               Path(folder) / "calyx" / "calyx.c",
               "-o", to, "-lm", "-pthread",
               *os.environ.get("LDFLAGS", "").split()]
    if sys.platform == "darwin":
        command += ["-undefined", "dynamic_lookup"]
    subprocess.run(command, check=True)


def metadata(number):
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    return (f"Metadata-Version: 2.1\nName: calyx\nVersion: {number}\n"
            "Summary: Bloom filters and their kin, in a few bits a key\n"
            "Requires-Python: >=3.11\nDescription-Content-Type: text/markdown\n"
            f"\n{readme}")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as folder:
        source = library(folder)
        number = version((source / "calyx.h").read_text())
        module = Path(folder) / "module.so"
        compile_module(folder, module)
        platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
        tag = f"cp311-abi3-{platform}"
        info = f"calyx-{number}.dist-info"
        files = {name: (HERE / name).read_bytes() for name in PACKAGE}
        files[MODULE] = module.read_bytes()
        files[f"{info}/METADATA"] = metadata(number).encode()
        files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: calyx\n"
                                  f"Root-Is-Purelib: false\nTag: {tag}\n").encode()
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
        record += f"{name},sha256={digest.rstrip(b'=').decode()},{len(content)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    wheel = f"calyx-{number}-{tag}.whl"
    with zipfile.ZipFile(Path(wheel_directory) / wheel, "w",
                         zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    with tempfile.TemporaryDirectory() as folder:
        source = library(folder)
        number = version((source / "calyx.h").read_text())
        name = f"calyx-{number}"
        path = Path(sdist_directory) / f"{name}.tar.gz"
        with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as archive:
            for file in ["pyproject.toml", "backend.py", "README.md",
                         *(f"calyx/{file.name}" for file in SOURCES),
                         *PACKAGE]:
                archive.add(HERE / file, f"{name}/{file}")
            for file in ("calyx.c", "calyx.h"):
                archive.add(source / file, f"{name}/library/{file}")
            about = metadata(number).encode()
            entry = tarfile.TarInfo(f"{name}/PKG-INFO")
            entry.size = len(about)
            archive.addfile(entry, io.BytesIO(about))
    return path.name
