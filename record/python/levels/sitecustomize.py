"""Makes Python programs record asyncio; `tracebraid record --levels` adds this directory to PYTHONPATH.

Python imports a module of this name when it starts. This one removes its directory from sys.path
again, and imports the sitecustomize that the program would have imported without it. The recording
begins only when the program imports asyncio. Nothing in this file raises an exception of its own,
and it is valid in Python 2.
"""

import os
import sys


def _install():
    directory = os.path.dirname(_HERE)
    sys.path.insert(0, directory)
    try:
        import tracebraid_asyncio

        tracebraid_asyncio.install()
    finally:
        sys.path.remove(directory)


class _Finder:
    """Finds asyncio as Python does, and records it once it has been imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "asyncio":
            return None
        sys.meta_path.remove(_Finder)
        try:
            from importlib.machinery import PathFinder

            spec = PathFinder.find_spec(name, path, target)
            loader = spec.loader
            execute = loader.exec_module

            def exec_module(module):
                del loader.exec_module
                execute(module)
                try:
                    _install()
                except Exception:
                    pass

            loader.exec_module = exec_module
            return spec
        except Exception:
            return None


def _program_imports(name):
    """Imports the program's own module in place of this one, if there is any."""
    ours = sys.modules.pop(name)
    try:
        __import__(name)
    except ImportError as error:
        if getattr(error, "name", name) != name:
            raise
        sys.modules[name] = ours


_HERE = os.path.dirname(os.path.abspath(__file__))
if _HERE in sys.path:
    sys.path.remove(_HERE)
if os.environ.get("TRACEBRAID_SESSION") and sys.version_info >= (3, 8):
    sys.meta_path.insert(0, _Finder)
_program_imports(__name__)
