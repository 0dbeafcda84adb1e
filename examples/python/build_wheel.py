"""Builds the package without setuptools, so that pip downloads nothing (PEP 517)."""

import base64
import hashlib
import re
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PACKAGE = "freshet_client"


def setting(name):
    """Returns a string of the project table; Python 3.9 has no TOML parser."""
    return re.search(rf'^{name} = "(.*)"$', PROJECT, re.MULTILINE).group(1)


VERSION = setting("version")
METADATA = "\n".join([
    "Metadata-Version: 2.1", f"Name: {setting('name')}", f"Version: {VERSION}", f"Summary: {setting('description')}",
    f"Requires-Python: {setting('requires-python')}", "Description-Content-Type: text/markdown", "",
    (ROOT / "README.md").read_text(encoding="utf-8")])


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes a wheel: the package, and three files about it."""
    info = f"{PACKAGE}-{VERSION}.dist-info"
    files = {f"{PACKAGE}/{f.name}": f.read_bytes() for f in sorted((ROOT / PACKAGE).iterdir()) if f.is_file()}
    files[f"{info}/METADATA"] = METADATA.encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: build_wheel\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    name = f"{PACKAGE}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            wheel.writestr(zipfile.ZipInfo(path), content)
    return name


def build_sdist(sdist_directory, config_settings=None):
    """Writes a source archive."""
    folder = f"{PACKAGE}-{VERSION}"
    with tarfile.open(Path(sdist_directory, folder + ".tar.gz"), "w:gz") as archive:
        for name in ("pyproject.toml", "README.md", "build_wheel.py", PACKAGE):
            archive.add(ROOT / name, f"{folder}/{name}", filter=lambda f: None if "__pycache__" in f.name else f)
    return folder + ".tar.gz"
