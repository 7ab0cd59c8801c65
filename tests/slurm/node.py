"""A real SLURM cluster of one node, this machine, on Debian's packages: python -m tests.slurm.node FOLDER.

No systemd: munged, mariadbd, slurmdbd, slurmctld and slurmd are started here as root, with all their files in one
folder, and ended by their process ids. Two things are outside it: the link /etc/slurm/slurm.conf, since the executor
plugin takes SLURM_CONF away from the commands inside its jobs; and a network namespace in which slurmd and all jobs
live, which reaches the controller and nothing else, as the compute nodes of many clusters do. The node claims more
cores, memory and GPUs than the machine has, so that real requests are granted; its GPUs are copies of /dev/null.
"""

import argparse
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

ETC = Path("/etc/slurm/slurm.conf")
DAEMONS = ("slurmd", "slurmctld", "slurmdbd", "mariadbd", "munged")
"""In the order of stopping."""
PACKAGES = ("slurm-wlm", "munge", "slurmdbd", "mariadb-server-core", "mariadb-client-core")
ACCOUNT = "lab"
"""The one account that accounting knows."""
HOST_ADDRESS, NODE_ADDRESS = "10.213.47.1", "10.213.47.2"
"""Of the two ends of the cable between controller and node."""
CPUS, MEMORY_MB, GPUS = 4, 256_000, 2
POLICY = Path("/usr/sbin/policy-rc.d")  # asked by Debian's packages whether they may start their daemons

CONFIG = """\
ClusterName=semblance
SlurmctldHost={host}({controller})
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
SlurmctldPort={port}
SlurmdPort={node_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
# Without cgroups, memory is what a poll of /proc finds.
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=2
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={controller}
AccountingStoragePort={dbd_port}
AccountingStoragePass={folder}/munge.socket
AccountingStorageEnforce=associations
AccountingStorageTRES=gres/gpu
SchedulerParameters=bf_interval=1,sched_interval=2,sched_min_interval=0,batch_sched_delay=0,requeue_delay=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdTimeout=20
# The executor plugin asks squeue about jobs that ended.
MinJobAge=86400
ReturnToService=2
KillWait=10
UnkillableStepTimeout=900
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName={host} NodeAddr={node} CPUs={cpus} RealMemory={memory} Gres=gpu:pretended:{gpus} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=1-00:00:00 PriorityTier=1
PartitionName=gpu Nodes={host} MaxTime=1-00:00:00 PriorityTier=1
PartitionName=urgent Nodes={host} MaxTime=1-00:00:00 PriorityTier=10 PreemptMode=OFF
"""

DBD_CONFIG = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost={host}
DbdAddr={controller}
DbdPort={dbd_port}
SlurmUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={db_port}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
"""


class UnavailableError(Exception):
    """This machine can have no cluster of its own; says why."""


class Job(NamedTuple):
    """A job as the queue shows it, also after its end."""

    number: int
    name: str
    """What the executor plugin writes down: rule_NAME_wildcards_..., or rule_GROUP of a group."""
    partition: str
    state: str
    memory: str
    minutes: int
    gpus: int
    cpus: int


def install() -> None:
    """Install SLURM from Debian's packages where it is missing.

    Raises:
        UnavailableError: without root or apt, or if the packages cannot be had.
    """
    if os.geteuid() != 0:
        raise UnavailableError("starting SLURM's daemons takes root")
    if all(map(shutil.which, DAEMONS)):
        return
    if not shutil.which("apt-get"):
        raise UnavailableError("no slurmctld, and no apt-get to install it with")
    apt = ["apt-get", "--option", "DPkg::Lock::Timeout=300"]
    wanted = ["install", "--yes", "--no-install-recommends", *PACKAGES]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    with no_daemons_started():
        for command in ([*apt, *wanted], [*apt, "update"], [*apt, *wanted]):
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if all(map(shutil.which, DAEMONS)):
                return
    raise UnavailableError(f"apt-get cannot install slurm-wlm: {done.stderr.strip().splitlines()[-1:]}")


@contextmanager
def no_daemons_started() -> Iterator[None]:
    """Have packages installed without their daemons being started."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()


class Node:
    """The cluster; all its files lie in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "slurm.conf"
        self.host = socket.gethostname().split(".")[0]
        self.namespace = f"semblance{os.getpid()}"
        self.apart = False
        """Whether its jobs have a network of their own; not where this machine makes none."""

    def start(self) -> None:
        """Write the configuration, start the daemons, and wait until a job can run.

        Raises:
            UnavailableError: if another cluster's configuration is there, or this machine allows no device nodes.
        """
        if ETC.exists() or (ETC.is_symlink() and ETC.readlink() != self.config and ETC.readlink().exists()):
            raise UnavailableError(f"{ETC} is another cluster's")
        self.apart = self._plug_in()
        self._write()
        ETC.parent.mkdir(exist_ok=True)
        ETC.unlink(missing_ok=True)
        ETC.symlink_to(self.config)
        self._start("munged", "--force", f"--key-file={self.folder}/munge.key",
                    f"--socket={self.folder}/munge.socket", f"--pid-file={self.folder}/munged.pid",
                    f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/munge.seed")  # fmt: skip
        wait_for(lambda: succeeds("munge", f"--socket={self.folder}/munge.socket", "-n"), 20, "munged")
        self._account()
        self._start("slurmctld")
        self.start_slurmd()
        wait_for(lambda: "idle" in said("sinfo", "-h", "-o", "%T"), 60, "slurmd")

    def start_slurmd(self) -> None:
        """Start the node's daemon, in its namespace."""
        inside = ["nsenter", f"--net=/run/netns/{self.namespace}"] if self.apart else []
        self._start("slurmd", before=inside)

    def crash(self) -> None:
        """End slurmd and all that it has started at once, as a node that loses power does."""
        pids = [self._process("slurmd"), *(int(pid) for pid in said("pgrep", "-x", "slurmstepd").split())]
        for pid in filter(None, pids):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.apart:
            for pid in said("ip", "netns", "pids", self.namespace).split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)

    def _plug_in(self) -> bool:
        """Make a network that reaches this machine at one address and nothing else."""
        ends = ("svhost", "svnode")
        inside = ["ip", "netns", "exec", self.namespace]
        commands = [
            ["ip", "netns", "add", self.namespace],
            ["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1], "netns", self.namespace],
            ["ip", "address", "add", f"{HOST_ADDRESS}/30", "dev", ends[0]],
            ["ip", "link", "set", ends[0], "up"],
            [*inside, "ip", "address", "add", f"{NODE_ADDRESS}/30", "dev", ends[1]],
            [*inside, "ip", "link", "set", ends[1], "up"],
            [*inside, "ip", "link", "set", "lo", "up"],
        ]
        if shutil.which("ip") and shutil.which("nsenter") and all(succeeds(*command) for command in commands):
            return True
        self._unplug()
        return False

    def _unplug(self) -> None:
        subprocess.run(["ip", "netns", "delete", self.namespace], check=False, capture_output=True)
        subprocess.run(["ip", "link", "delete", "svhost"], check=False, capture_output=True)

    def _account(self) -> None:
        """Start a database and slurmdbd, and give this user an account."""
        data, log = self.folder / "database", self.folder / "mariadb-install.log"
        with log.open("w") as printed:
            install = [
                "mariadb-install-db",
                "--no-defaults",
                "--user=root",
                f"--datadir={data}",
                "--skip-test-db",
            ]
            subprocess.run(install, check=True, stdout=printed, stderr=printed)
        with (self.folder / "mariadbd.log").open("w") as printed:
            subprocess.Popen(
                ["mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", "--bind-address=127.0.0.1",
                 f"--port={self.ports['db_port']}", f"--socket={self.folder}/mariadb.socket",
                 f"--pid-file={self.folder}/mariadbd.pid", "--innodb-flush-log-at-trx-commit=0",
                 "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900"],
                stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, start_new_session=True,
            )  # fmt: skip
        client = [
            "mariadb",
            "--no-defaults",
            f"--socket={self.folder}/mariadb.socket",
            "--user=root",
            "--execute",
        ]
        wait_for(lambda: succeeds(*client, "select 1"), 60, "mariadbd")
        grants = "create database slurm_acct_db; create user slurm@'127.0.0.1' identified by 'slurm';"
        subprocess.run([*client, f"{grants} grant all on slurm_acct_db.* to slurm@'127.0.0.1'"], check=True)
        self._start("slurmdbd")
        wait_for(lambda: succeeds("sacctmgr", "--noheader", "list", "cluster"), 60, "slurmdbd")
        for what in (["cluster", "semblance"], ["account", ACCOUNT, "Cluster=semblance"]):
            subprocess.run(["sacctmgr", "--immediate", "add", *what], check=True, capture_output=True)
        self.add_user("root")

    def add_user(self, name: str) -> None:
        """Let a user charge the account."""
        add = ["sacctmgr", "--immediate", "add", "user", name, f"Account={ACCOUNT}"]
        subprocess.run(add, check=True, capture_output=True)

    def _write(self) -> None:
        for name in ("state", "spool"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        for number in range(GPUS):
            try:
                os.mknod(self.folder / f"gpu{number}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            except PermissionError as error:
                raise UnavailableError("no right to make device nodes, which stand for GPUs") from error
        names = ("port", "node_port", "dbd_port", "db_port")
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        ends = (HOST_ADDRESS, NODE_ADDRESS) if self.apart else ("127.0.0.1", "127.0.0.1")
        places = {"host": self.host, "folder": self.folder, "controller": ends[0], "node": ends[1]}
        sizes = {"cpus": CPUS, "memory": MEMORY_MB, "gpus": GPUS}
        self.config.write_text(CONFIG.format(**places, **self.ports, **sizes))
        database = self.folder / "slurmdbd.conf"
        database.write_text(DBD_CONFIG.format(**places, **self.ports))
        database.chmod(0o600)
        devices = f"{self.folder}/gpu[0-{GPUS - 1}]"
        (self.folder / "gres.conf").write_text(
            f"NodeName={self.host} Name=gpu Type=pretended File={devices}\n"
        )

    def _start(self, daemon: str, *options: str, before: Sequence[str] = ()) -> None:
        environment = os.environ | {"SLURM_CONF": str(self.config)}  # gres.conf is looked for beside it
        with (self.folder / f"{daemon}.started").open("w") as printed:  # a daemon would keep a pipe open
            subprocess.run(
                [*before, daemon, *options], check=True, env=environment, stdout=printed, stderr=printed
            )

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Have slurmctld live and answer nobody."""
        process = self._process("slurmctld")
        assert process
        os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process, signal.SIGCONT)

    def stop(self) -> None:
        """Cancel what is in the queue, end the daemons, take the link away."""
        if self._process("slurmctld"):
            for job in self.jobs():
                subprocess.run(["scancel", str(job.number)], check=False, capture_output=True)
            wait_for(lambda: not said("squeue", "-h"), 40, "the queue to be empty")
        for daemon in DAEMONS:
            self._end(daemon)
        if self.apart:
            self._unplug()
        if ETC.is_symlink() and ETC.readlink() == self.config:
            ETC.unlink()

    def _process(self, daemon: str) -> int | None:
        """Process id of a daemon that this node started and that still lives."""
        file = self.folder / f"{daemon}.pid"
        if not file.exists() or not (text := file.read_text().strip()):
            return None
        status = Path(f"/proc/{text}/status")
        alive = status.exists() and re.search(
            rf"Name:\s{daemon}\n(?:.*\n)*?State:\s[^ZX]", status.read_text()
        )
        return int(text) if alive else None

    def _end(self, daemon: str) -> None:
        if process := self._process(daemon):
            os.kill(process, signal.SIGTERM)
            wait_for(lambda: self._process(daemon) is None, 30, f"{daemon} to end")

    def jobs(self, user: str | None = None) -> list[Job]:
        """Every job since the cluster started, those that ended among them: of all users, or of one."""
        fields = "JobID:|,Comment:|,Partition:|,State:|,MinMemory:|,TimeLimit:|,tres-per-job:|,NumCPUs:"
        whose = ["--user", user] if user else []
        asked = said("squeue", *whose, "--noheader", "--states=all", "--sort=i", f"--Format={fields}")
        lines = asked.splitlines()
        found = []
        for line in lines:
            number, name, partition, state, memory, limit, tres, cpus = (x.strip() for x in line.split("|"))
            gpus = re.search(r"gpu(?::\w+)?:(\d+)", tres)
            found.append(
                Job(int(number), name, partition, state, memory, minutes_in(limit),
                    int(gpus[1]) if gpus else 0, int(cpus))
            )  # fmt: skip
        return found


def minutes_in(limit: str) -> int:
    """Minutes of a limit such as 30:00, 8:00:00 or 1-00:00:00."""
    days, _, clock = limit.rpartition("-")
    hours, minutes, _seconds = [0, 0, 0, *map(int, clock.split(":"))][-3:]
    return (int(days or 0) * 24 + hours) * 60 + minutes


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def said(*command: str) -> str:
    """What a command printed."""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def succeeds(*command: str) -> bool:
    """Whether a command ends well."""
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def wait_for(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Wait until ``condition`` holds.

    Raises:
        TimeoutError: if it does not within ``seconds``.
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(0.2)


def main() -> None:
    """Start the cluster, keep it until a line or the end of the input comes, stop it."""
    parser = argparse.ArgumentParser(prog="python -m tests.slurm.node", description=__doc__)
    parser.add_argument("folder", type=Path, help="for the cluster's files; a new one")
    node = Node(parser.parse_args().folder.resolve())
    install()
    try:
        node.start()
        input(f"{said('sinfo')}Return stops it. ")
    finally:
        node.stop()


if __name__ == "__main__":
    main()
