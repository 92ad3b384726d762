"""Database servers under the recorder; their clients are not recorded."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from recorder import IS_ROOT, environment, under_recorder

PATIENCE = 60
POSTGRES = "postgres"
# A command that switches to another user can write its own traces only if that user may create
# directories there.
OPEN_SESSION = ["sh", "-c", """
    [ -z "$TRACEBRAID_SESSION" ] || (umask 0; mkdir -p "$TRACEBRAID_SESSION/ust/pid"; chmod -R 777 "$TRACEBRAID_SESSION")
    exec "$@"
""", "sh"]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


class Server:
    """A server that is started for each run; the time is the client's, once the server answers."""

    def __init__(self, directory):
        self.directory = directory
        self.port = free_port()

    def run(self, options, trace):
        server = subprocess.Popen(under_recorder(options, trace, self.command()), env=environment(),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.wait_for(server)
            begin = time.perf_counter()
            subprocess.run(self.client(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            seconds = time.perf_counter() - begin
        finally:
            self.stop()
            server.wait(PATIENCE)
        return seconds

    def wait_for(self, server):
        end = time.monotonic() + PATIENCE
        while subprocess.run(self.question(), capture_output=True).returncode != 0:
            if server.poll() is not None or time.monotonic() > end:
                sys.exit(f"bench: {self.command()[0]} does not answer")
            time.sleep(0.02)


class Redis(Server):
    """redis-server under redis-benchmark."""

    NEEDS = ("redis-server", "redis-benchmark", "redis-cli")
    TITLE = "redis-server"

    def command(self):
        return ["redis-server", "--port", self.port, "--save", "", "--appendonly", "no"]

    def client(self):
        return ["redis-benchmark", "-p", self.port, "-n", "15000", "-c", "20", "-t", "set,get", "-q"]

    def question(self):
        return ["redis-cli", "-p", self.port, "ping"]

    def stop(self):
        subprocess.run(["redis-cli", "-p", self.port, "shutdown", "nosave"], capture_output=True)


class Postgres(Server):
    """PostgreSQL under pgbench's default transactions, without waiting for the disk."""

    NEEDS = ("pgbench", "pg_isready")
    TITLE = "PostgreSQL"

    def __init__(self, directory):
        super().__init__(directory)
        self.data = directory / "postgres"
        self.programs = postgres_programs()
        self.data.mkdir()
        if IS_ROOT:
            shutil.chown(self.data, POSTGRES, POSTGRES)
        self.call([self.programs / "initdb", "-D", self.data, "-U", POSTGRES, "--auth=trust", "--no-sync"])
        server = subprocess.Popen([str(part) for part in self.command()], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.wait_for(server)
        self.call(["pgbench", *self.address(), "-i", "-s", "2", "-q", POSTGRES])
        self.stop()
        server.wait(PATIENCE)

    def call(self, command):
        done = subprocess.run([str(part) for part in [*self.user(), *command]], capture_output=True, text=True,
                              cwd=self.data)
        if done.returncode != 0:
            sys.exit(f"bench: {command}: {done.stderr}")

    def user(self):
        """Runs the server as another user than root, with the capability to count its own context switches."""
        if not IS_ROOT:
            return []
        return ["setpriv", "--reuid", POSTGRES, "--regid", POSTGRES, "--clear-groups", "--inh-caps", "+perfmon",
                "--ambient-caps", "+perfmon"]

    def address(self):
        return ["-h", "127.0.0.1", "-p", self.port, "-U", POSTGRES]

    def command(self):
        return [*OPEN_SESSION, *self.user(), str(self.programs / "postgres"), "-D", str(self.data), "-p", self.port,
                "-k", str(self.data), "-c", "fsync=off", "-c", "autovacuum=off"]

    def client(self):
        return ["pgbench", *self.address(), "-n", "-c", "4", "-t", "250", POSTGRES]

    def question(self):
        return ["pg_isready", *self.address(), "-d", POSTGRES]

    def stop(self):
        try:
            os.kill(int((self.data / "postmaster.pid").read_text().split()[0]), signal.SIGINT)
        except (FileNotFoundError, ProcessLookupError, IndexError):
            pass


def postgres_programs():
    """Directory of the server's programs in Debian; None if the server is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return found[-1].parent if found else None
