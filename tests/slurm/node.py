"""A real SLURM cluster of one node, this machine, on Debian's packages.

No systemd: munged, mariadbd, slurmdbd, slurmctld and slurmd are started here as root, with all their files in one
folder, and ended by their process ids. Two things are outside it: the link /etc/slurm/slurm.conf, since the executor
plugin takes SLURM_CONF away from the commands inside its jobs; and a network namespace in which slurmd and all jobs
live, which reaches the controller and nothing else, as the compute nodes of many clusters do. The node claims more
cores, memory and GPUs than the machine has, so that real requests are granted; its GPUs are copies of /dev/null, which
jobs do not see: a job that is given a GPU it cannot use would end.
"""

import os
import re
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import psutil

ETC = Path("/etc/slurm/slurm.conf")
PREFIX = "semblance-slurm-"
"""Of the folders of these clusters."""
DAEMONS = ("slurmd", "slurmctld", "slurmdbd", "mariadbd", "munged")
"""In the order of stopping."""
PACKAGES = ("slurm-wlm", "munge", "slurmdbd", "mariadb-server-core", "mariadb-client-core", "iproute2")
ACCOUNT = "lab"
"""The one account that accounting knows."""
HOST_ADDRESS, NODE_ADDRESS = "10.213.47.1", "10.213.47.2"
"""Of the two ends of the cable between controller and node."""


CPUS, MEMORY_MB, GPUS = 4, 256_000, 2
"""What the node says it has."""

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
TaskProlog={folder}/prolog.sh
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
SlurmdTimeout=20
# The executor plugin asks squeue about jobs that ended.
MinJobAge=86400
ReturnToService=2
KillWait=10
UnkillableStepTimeout=900
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName={host} NodeAddr={node} CPUs={cpus} RealMemory={memory} Gres=gpu:pretended:{gpus} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=1-00:00:00
PartitionName=gpu Nodes={host} MaxTime=1-00:00:00
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
    limit: str
    """Such as 8:00:00."""
    gpus: int
    cpus: int


class Node:
    """The cluster; all its files lie in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "slurm.conf"
        self.host = socket.gethostname().split(".")[0]
        self.namespace = f"semblance{os.getpid()}"

    def start(self) -> None:
        """Write the configuration, start the daemons, and wait until a job can run.

        Raises:
            UnavailableError: if this machine can have none; says why.
        """
        if os.geteuid() != 0:
            raise UnavailableError("starting SLURM's daemons takes root")
        if not all(map(shutil.which, (*DAEMONS, "ip", "nsenter"))):
            raise UnavailableError(f"apt-get install --no-install-recommends {' '.join(PACKAGES)}")
        if is_taken():
            raise UnavailableError(f"{ETC} is another cluster's")
        self._plug_in()
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
        self._start("slurmd", before=["nsenter", f"--net=/run/netns/{self.namespace}"])
        wait_for(lambda: "idle" in said("sinfo", "-h", "-o", "%T"), 60, "slurmd")

    def _plug_in(self) -> None:
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
        if not all(succeeds(*command) for command in commands):
            raise UnavailableError("this machine makes no network namespaces")

    def _account(self) -> None:
        """Start a database and slurmdbd, and give this user an account."""
        data = self.folder / "database"
        options = ["--no-defaults", "--user=root", f"--datadir={data}"]
        install = ["mariadb-install-db", *options, "--skip-test-db"]
        subprocess.run(install, check=True, capture_output=True)
        with (self.folder / "mariadbd.log").open("w") as printed:
            subprocess.Popen(
                ["mariadbd", *options, "--bind-address=127.0.0.1",
                 f"--port={self.ports['db_port']}", f"--socket={self.folder}/mariadb.socket",
                 f"--pid-file={self.folder}/mariadbd.pid", "--innodb-flush-log-at-trx-commit=0",
                 "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900"],
                stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, start_new_session=True,
            )  # fmt: skip
        socket_option = f"--socket={self.folder}/mariadb.socket"
        client = ["mariadb", "--no-defaults", socket_option, "--user=root", "--execute"]
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
        prolog = self.folder / "prolog.sh"
        prolog.write_text("#!/bin/sh\necho 'export CUDA_VISIBLE_DEVICES='\n")
        prolog.chmod(0o755)
        names = ("port", "node_port", "dbd_port", "db_port")
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        places = {"host": self.host, "folder": self.folder, "controller": HOST_ADDRESS, "node": NODE_ADDRESS}
        self.config.write_text(CONFIG.format(**places, **self.ports, cpus=CPUS, memory=MEMORY_MB, gpus=GPUS))
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

    def stop(self) -> None:
        """Cancel what is in the queue, end the daemons, take the link away."""
        if self.process("slurmctld"):
            for job in self.jobs():
                subprocess.run(["scancel", str(job.number)], check=False, capture_output=True)
            wait_for(lambda: not said("squeue", "-h"), 40, "the queue to be empty")
        for name in DAEMONS:
            if daemon := self.process(name):
                daemon.terminate()
                wait_for(lambda name=name: self.process(name) is None, 30, f"{name} to end")  # type: ignore[misc]
        subprocess.run(["ip", "netns", "delete", self.namespace], check=False, capture_output=True)
        subprocess.run(["ip", "link", "delete", "svhost"], check=False, capture_output=True)
        if ETC.is_symlink() and ETC.readlink() == self.config:
            ETC.unlink()

    def process(self, name: str) -> psutil.Process | None:
        """A daemon that this node started and that still lives."""
        with suppress(OSError, ValueError, psutil.NoSuchProcess):
            found = psutil.Process(int((self.folder / f"{name}.pid").read_text()))
            if found.name() == name and found.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                return found
        return None

    def jobs(self, user: str | None = None) -> list[Job]:
        """Every job since the cluster started, those that ended among them: of all users, or of one."""
        fields = "JobID:|,Comment:|,Partition:|,State:|,MinMemory:|,TimeLimit:|,tres-per-job:|,NumCPUs:"
        whose = ["--user", user] if user else []
        asked = said("squeue", *whose, "--noheader", "--states=all", "--sort=i", f"--Format={fields}")
        return [job_in(line) for line in asked.splitlines()]


def is_taken() -> bool:
    """Whether this machine has another cluster: a killed session of these tests leaves a link and no daemon."""
    if not ETC.is_symlink():
        return ETC.exists()
    folder = ETC.readlink().parent
    if folder.name.startswith(PREFIX):
        return any(map(Node(folder).process, DAEMONS))
    return ETC.exists()


def job_in(line: str) -> Job:
    """The job of a line of squeue."""
    number, name, partition, state, memory, limit, tres, cpus = (part.strip() for part in line.split("|"))
    gpus = re.search(r"gpu(?::\w+)?:(\d+)", tres)
    return Job(int(number), name, partition, state, memory, limit, int(gpus[1]) if gpus else 0, int(cpus))


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def said(*command: str) -> str:
    """A command's output."""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def succeeds(*command: str) -> bool:
    """Whether a command ends well."""
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def wait_for(condition: Callable[[], object], seconds: float, what: str, every: float = 0.2) -> None:
    """Wait until ``condition`` holds, looking ``every`` so many seconds.

    Raises:
        TimeoutError: if it does not within ``seconds``.
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(every)
