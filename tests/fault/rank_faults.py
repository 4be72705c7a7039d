"""What the other ranks do when one dies, stops, fails or leaves: all end in time, with the right exit
code, and exactly one of them prints who it was, where and in what.

Usage: rank_faults.py PROGRAM [PATTERN...]   (a rank_program; the cases whose names match, else all)"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from group import SCALE, Group, alive, expect, run_cases, wait_until

PROGRAM = sys.argv[1]
HEARTBEAT = 0.2
LIMIT = 2.0
PEER_LOST, TIMEOUT = 5, 6
TRANSPORTS = ("shm", "socket")


def command(step=412, phase="backward", bucket=3, *more):
    return [PROGRAM, "--dir", "{dir}", "--step", str(step), "--phase", phase, "--bucket", str(bucket), *more]


def short_limits():
    return ["--heartbeat-ms", str(int(HEARTBEAT * 1000)), "--peer-timeout-ms", str(int(LIMIT * 1000))]


def check_end(group, start, survivors, code, limit, printer, line, deaf=False):
    """All `survivors` leave with `code` within `limit` of `start`; only `printer` says a word: `line`. Where that is None
    one of them does. Deaf ones are ended by their control threads, others leave by themselves."""
    ends = group.exits(survivors, limit + 5)
    for rank, (got, when) in ends.items():
        expect(got == code, f"rank {rank} left with {got}, not {code}")
        expect(when - start <= limit * SCALE, f"rank {rank} left after {when - start:.2f} s, limit {limit * SCALE:g} s")
        expect(group.exists(f"left.{rank}") != deaf, f"rank {rank} " + ("was not deaf" if deaf else "had to be ended"))
    lines = group.lines(survivors)
    expect(len(lines) == 1, f"{len(lines)} lines instead of one: {lines}")
    expect(printer in (None, lines[0][0]), f"rank {lines[0][0]} printed instead of rank {printer}")
    expect(re.search(line, lines[0][1]), f"'{lines[0][1]}' is not like '{line}'")


def printer_without(victim):
    """Who prints the line: rank 0, or the first of the others that finds it lost."""
    return None if victim == 0 else 0


def others(ranks, victim):
    return [rank for rank in range(ranks) if rank != victim]


def killed(ranks, victim, step, phase, bucket, *more):
    with Group(ranks, command(step, phase, bucket, *more)) as group:
        group.wait_files("ready")
        start = group.kill(victim)
        where = f"step {step}, {phase}" + (f", bucket {bucket}" if bucket >= 0 else "")
        check_end(group, start, others(ranks, victim), PEER_LOST, 2.0, printer_without(victim),
                  rf"^rank {victim} \(host \S+, pid {group.pids[victim]}\) died in {where}; ", "--deaf" in more)


def killed_together(ranks, victims):
    """Rank 0 and others at once, as when their memory runs out."""
    with Group(ranks, command(412, "backward", 3)) as group:
        group.wait_files("ready")
        for victim in victims:  # none is to find another lost before it is lost itself
            group.kill(victim, signal.SIGSTOP)
        start = min(group.kill(victim) for victim in victims)
        survivors = [rank for rank in range(ranks) if rank not in victims]
        check_end(group, start, survivors, PEER_LOST, 2.0, None,
                  rf"^rank 0 \(host \S+, pid {group.pids[0]}\) died in step 412, backward, bucket 3; ")


def killed_in_sum(ranks, victim, transport):
    """While everything flows: between two sums there is no bucket."""
    with Group(ranks, command(8, "all-reduce", 6, "--sum", transport)) as group:
        group.wait_files("ready")
        start = group.kill(victim)
        check_end(group, start, others(ranks, victim), PEER_LOST, 2.0, printer_without(victim),
                  rf"^rank {victim} \(host \S+, pid {group.pids[victim]}\) died in step 8, all-reduce(, bucket 6)?; ")


def killed_in_the_middle_of_a_sum(ranks, transport):
    """Rank 0 is stopped for a moment: rank 1, its successor, cannot end the sum that it is in."""
    with Group(ranks, command(8, "all-reduce", 6, "--sum", transport)) as group:
        group.wait_files("ready")
        group.kill(0, signal.SIGSTOP)
        time.sleep(0.3)  # for rank 1 to come to where it waits
        start = group.kill(1)
        group.kill(0, signal.SIGCONT)
        check_end(group, start, others(ranks, 1), PEER_LOST, 2.0, 0,
                  rf"^rank 1 \(host \S+, pid {group.pids[1]}\) died in step 8, all-reduce, bucket 6; ")


def stopped(ranks, victim):
    with Group(ranks, command(5, "all-reduce", 0, *short_limits())) as group:
        group.wait_files("ready")
        start = group.kill(victim, signal.SIGSTOP)
        line = (rf"^rank {victim} \(host \S+, pid {group.pids[victim]}\) stopped answering in step 5, all-reduce, "
                rf"bucket 0: nothing heard for 2 s; ")
        # Found within the limit and one heartbeat; the rest is for the machine to schedule the leaving.
        check_end(group, start, others(ranks, victim), TIMEOUT, LIMIT + HEARTBEAT + 0.5,
                  printer_without(victim), line)
        # Whoever was given up learns it when it runs again, and accuses nobody.
        start = group.kill(victim, signal.SIGCONT)
        ends = group.exits([victim], 5)
        expect(ends[victim][0] == TIMEOUT, f"the stopped rank left with {ends[victim][0]}")
        expect(len(group.lines(range(group.ranks))) == 1, f"the stopped rank printed: {group.lines(range(group.ranks))}")


def stopped_for(seconds, victim, limits):
    with Group(3, command(1, "forward", -1, *limits)) as group:
        group.wait_files("ready")
        group.kill(victim, signal.SIGSTOP)
        time.sleep(seconds)  # the fault itself
        group.kill(victim, signal.SIGCONT)
        group.signal_file("go")
        ends = group.exits(range(3), 10)
        expect(all(code == 0 for code, _ in ends.values()), f"left with {ends}")
        expect(group.lines(range(group.ranks)) == [], f"complained: {group.lines(range(group.ranks))}")


def everyone_paused(group, seconds):
    """All ranks stop, as with their host or container, and go on; rank 1 long before the others."""
    for rank in range(group.ranks):
        group.kill(rank, signal.SIGSTOP)
    time.sleep(seconds)  # the fault itself
    for rank in sorted(range(group.ranks), key=lambda rank: rank != 1):
        group.kill(rank, signal.SIGCONT)
        time.sleep(0.2 if rank == 1 else 0)


def paused_in_sum(transport):
    """Rank 1 waits in a sum when all stop for longer than a sum may wait."""
    limits = ["--collective-timeout-ms", str(int(2000 * SCALE))]
    with Group(3, command(8, "all-reduce", 6, "--sum", transport, *limits)) as group:
        group.wait_files("ready")
        group.kill(0, signal.SIGSTOP)
        time.sleep(0.3)  # for rank 1 to come to where it waits
        everyone_paused(group, 3.5 * SCALE)
        time.sleep(1.0)  # for a complaint to come
        expect(group.lines(range(3)) == [], f"complained: {group.lines(range(3))}")
        expect(all(alive(pid) for pid in group.pids), "a rank left")


def paused_at_the_end():
    """Rank 2 has still to finish when all stop for longer than that may take."""
    limits = ["--collective-timeout-ms", str(int(1500 * SCALE)), "--late-rank", "2"]
    with Group(3, command(8, "save", -1, *short_limits(), *limits)) as group:
        group.wait_files("ready")
        group.signal_file("go")
        time.sleep(0.3)  # for the others to finish
        everyone_paused(group, 2.5 * SCALE)
        time.sleep(0.3)
        group.signal_file("late")
        ends = group.exits(range(3), 10)
        expect(all(code == 0 for code, _ in ends.values()), f"left with {ends}")
        expect(group.lines(range(3)) == [], f"complained: {group.lines(range(3))}")


def failing(kind, code, line, victim=1, survivors=None):
    with Group(3, command(9, "save", -1, "--fail", kind, "--fail-rank", str(victim))) as group:
        group.wait_files("ready")
        start = time.monotonic()
        group.signal_file("go")
        check_end(group, start, survivors or range(3), code, 2.0, 0, line)


def leaving():
    with Group(3, command(9, "save", -1, "--fail", "leave", "--fail-rank", "1")) as group:
        group.wait_started()
        ends = group.exits(range(3), 10)
        expect([code for code, _ in ends.values()] == [PEER_LOST, 0, PEER_LOST], f"left with {ends}")
        lines = group.lines(range(group.ranks))
        expect(len(lines) == 1 and "rank 1 (host" in lines[0][1] and "left the run before its end" in lines[0][1],
               f"printed {lines}")


def finishing():
    with Group(3, command()) as group:
        group.wait_files("ready")
        group.signal_file("go")
        ends = group.exits(range(3), 10)
        expect(all(code == 0 for code, _ in ends.values()), f"left with {ends}")
        expect(group.lines(range(group.ranks)) == [], f"complained: {group.lines(range(group.ranks))}")


def launcher_killed(ranks, shielded):
    with Group(ranks, command(2, "forward", -1, "--deaf"), shielded) as group:
        group.wait_files("ready")
        group.mpirun.kill()
        wait_until(lambda: not any(alive(pid) for pid in group.pids), 2.0, "end of the ranks")


def processes(word):
    """Processes that run PROGRAM itself with an argument that holds `word`."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                if os.path.samefile(f"/proc/{pid}/exe", PROGRAM) and word in file.read():
                    found.append(int(pid))
        except OSError:
            pass  # it ended, or is somebody else's
    return found


def unknown_launcher_killed(wrapper):
    """A launcher of which MPI knows nothing: whoever notices its end is the control thread."""
    folder = tempfile.mkdtemp(prefix="lockstep-fault-")
    os.symlink(shutil.which("sh"), f"{folder}/mpirun")
    words = [word.replace("{dir}", folder) for word in command(2, "forward", -1, "--deaf")]
    launcher = subprocess.Popen([f"{folder}/mpirun", "-c", " ".join(wrapper + words) + " & wait"],
                                stdin=subprocess.DEVNULL)
    try:
        wait_until(lambda: os.path.exists(f"{folder}/ready.0"), 60, "start of the rank")
        expect(len(processes(folder)) == 1, f"processes {processes(folder)}")
        launcher.kill()
        launcher.wait()
        wait_until(lambda: not processes(folder), 2.0, "end of the rank")
    finally:
        for pid in processes(folder):
            os.kill(pid, signal.SIGKILL)
        launcher.kill()
        launcher.wait()
        shutil.rmtree(folder, ignore_errors=True)


RANK_1 = r"^rank 1 \(host \S+, pid \d+\) "
CASES = {
    "kill_rank_0": lambda: killed(3, 0, 412, "backward", 3),
    "kill_middle_rank": lambda: killed(3, 1, 0, "start", -1),
    "kill_last_rank": lambda: killed(3, 2, 7, "optimizer", -1),
    "kill_rank_0_of_two": lambda: killed(2, 0, 7, "save", -1),
    "kill_one_of_eight": lambda: killed(8, 5, 7, "shutdown", -1),
    "kill_rank_0_of_eight": lambda: killed(8, 0, 7, "shutdown", -1),
    "kill_ranks_0_and_1": lambda: killed_together(4, [0, 1]),
    "kill_ranks_0_1_and_2": lambda: killed_together(4, [0, 1, 2]),
    "kill_while_others_are_busy": lambda: killed(3, 1, 7, "load", -1, "--deaf"),
    **{f"kill_in_sum_over_{transport}_of_{ranks}": lambda transport=transport, ranks=ranks: killed_in_sum(
        ranks, ranks - 1, transport) for transport in TRANSPORTS for ranks in (2, 4)},
    **{f"kill_in_sum_over_{transport}_rank_0": lambda transport=transport: killed_in_sum(3, 0, transport)
       for transport in TRANSPORTS},
    **{f"kill_in_mid_sum_over_{transport}_of_{ranks}":
       lambda transport=transport, ranks=ranks: killed_in_the_middle_of_a_sum(ranks, transport)
       for transport in TRANSPORTS for ranks in (2, 3)},
    "stop_rank_0": lambda: stopped(3, 0),
    "stop_last_rank": lambda: stopped(3, 2),
    "stop_one_of_two": lambda: stopped(2, 1),
    "stop_three_seconds": lambda: stopped_for(3, 0, []),
    "stop_all_at_the_end": paused_at_the_end,
    **{f"stop_all_in_sum_over_{transport}": lambda transport=transport: paused_in_sum(transport)
       for transport in TRANSPORTS},
    "fail_by_early_exit": lambda: failing("exit", PEER_LOST, RANK_1 + "died in step 9, save; ", survivors=[0, 2]),
    "fail_by_abort": lambda: failing("abort", PEER_LOST, RANK_1 + "died in step 9, save; ", survivors=[0, 2]),
    "fail_by_leaving": leaving,
    "fail_with_io_error": lambda: failing("io_error", 3, RANK_1 + "failed in step 9, save: cannot write /some"),
    "fail_on_rank_0": lambda: failing("io_error", 3, "^rank 0 .* failed in step 9, save: cannot write /", victim=0),
    "fail_with_unknown_error": lambda: failing("unknown_error", 1, RANK_1 + "failed in step 9, save: not one of ours$"),
    "fail_out_of_memory": lambda: failing("bad_alloc", 7, RANK_1 + "failed in step 9, save: out of memory"),
    "fail_not": finishing,
    "launcher_killed": lambda: launcher_killed(3, shielded=False),
    "launcher_killed_with_one_rank": lambda: launcher_killed(1, shielded=False),
    "launcher_killed_behind_wrappers": lambda: launcher_killed(3, shielded=True),
    "launcher_unknown_to_mpi": lambda: unknown_launcher_killed([]),
    "launcher_unknown_behind_wrapper": lambda: unknown_launcher_killed(["sh", "-c", "'\"$0\" \"$@\"; :'"]),
}


if __name__ == "__main__":
    sys.exit(run_cases(CASES, sys.argv[2:]))
