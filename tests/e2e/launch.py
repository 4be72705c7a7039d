"""launch/train: signals save and stop, nothing outlives it, and a failure is one line and a code. Run from a path with a
space."""

import os
import shutil
import signal
import subprocess
import time

from trainer_runs import BIN, LIMIT, TINY, expect, main, state_hash

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../launch/train")
STOPPED = 75


def command(folder, *flags):
    root = folder.at("a clone")
    os.makedirs(os.path.join(root, "build/release"), exist_ok=True)
    os.makedirs(os.path.join(root, "launch"), exist_ok=True)
    shutil.copy(SOURCE, os.path.join(root, "launch/train"))
    if not os.path.exists(os.path.join(root, "build/release/bin")):
        os.symlink(os.path.abspath(BIN), os.path.join(root, "build/release/bin"))
    given = dict(zip(TINY[::2], TINY[1::2]))
    given.update({"--data-dir": folder.data, "--out-dir": folder.at("out")})
    given.update(dict(zip(flags[::2], flags[1::2])))
    return [os.path.join(root, "launch/train"), "2"] + [word for pair in given.items() for word in pair]


def ranks_of(folder):
    listed = subprocess.run(["pgrep", "-f", folder.at("out")], capture_output=True, text=True)
    return listed.stdout.split()


def wait_until(condition, what):
    end = time.monotonic() + LIMIT
    while not condition():
        expect(time.monotonic() < end, f"{what} did not come")
        time.sleep(0.02)


def signalled(folder, number):
    """Starts a run that would last, sends the script a signal, and returns its code and standard error."""
    errors = folder.at("errors")
    with open(errors, "w") as file:
        # A test in the background may have been started with SIGINT ignored.
        process = subprocess.Popen(command(folder, "--max-iters", "1000000", "--log-interval", "1"), text=True,
                                   stdout=subprocess.PIPE, stderr=file, start_new_session=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    for line in process.stdout:
        if line.startswith("step     3/"):
            break
    process.send_signal(number)
    process.stdout.read()  # to the end of every process that writes to it
    code = process.wait(timeout=LIMIT)
    wait_until(lambda: not ranks_of(folder), "the end of the ranks")
    saved = [name for name in os.listdir(folder.at("out")) if name.startswith("step_")]
    expect(len(saved) == 1, f"checkpoints {saved}")
    state_hash(folder.at(f"out/{saved[0]}"))
    with open(errors) as file:
        return code, file.read()


def stops(number):
    def case(folder):
        code, said = signalled(folder, number)
        expect(code == STOPPED, f"code {code}\n{said}")
        expect(said.count("\n") == 1 and "continue with --resume" in said, f"not one line:\n{said}")
    return case


def refuses_a_number_that_fills_the_host(folder):
    said = subprocess.run([command(folder)[0], "99999"], capture_output=True, text=True, timeout=LIMIT)
    expect(said.returncode == 2 and "99999 ranks on" in said.stderr, f"{said.returncode}\n{said.stderr}")


def trains_with_closed_streams(folder):
    words = command(folder, "--max-iters", "30")
    code = subprocess.run(["bash", "-c", 'exec "$@" <&- >&- 2>&-', "bash", *words], timeout=LIMIT).returncode
    expect(code == 0, f"code {code}")
    state_hash(folder.at("out/step_00000030"))


def ends_with_the_script(folder):
    code, _ = signalled(folder, signal.SIGKILL)
    expect(code == -signal.SIGKILL, f"code {code}")


def second_interrupt_kills(folder):
    """Ranks that wait where no signal is looked for: the vocabulary is a pipe that nobody writes to."""
    shutil.copytree(folder.data, folder.at("pipe"))
    os.remove(folder.at("pipe/vocab.json"))
    os.mkfifo(folder.at("pipe/vocab.json"))
    process = subprocess.Popen(command(folder, "--data-dir", folder.at("pipe")), stderr=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    wait_until(lambda: len(ranks_of(folder)) >= 4, "the start of the ranks")
    for _ in range(2):
        time.sleep(1)
        process.send_signal(signal.SIGINT)
    expect(process.wait(timeout=LIMIT) != 0, "code 0")
    wait_until(lambda: not ranks_of(folder), "the end of the ranks")


def failure_is_one_line_and_a_code(folder):
    done = subprocess.run(command(folder, "--n-head", "3"), capture_output=True, text=True)
    lines = done.stderr.splitlines()
    expect(done.returncode == 2 and len(lines) == 2, f"code {done.returncode}\n{done.stderr}")
    expect("--n-head 3" in lines[0] and "exit code 2" in lines[1], done.stderr)


main({"interrupt_saves": stops(signal.SIGINT), "terminate_saves": stops(signal.SIGTERM),
      "hang_up_saves": stops(signal.SIGHUP), "user_signal_saves": stops(signal.SIGUSR1),
      "ends_with_the_script": ends_with_the_script, "second_interrupt_kills": second_interrupt_kills,
      "trains_with_closed_streams": trains_with_closed_streams,
      "refuses_a_number_that_fills_the_host": refuses_a_number_that_fills_the_host,
      "failure_is_one_line_and_a_code": failure_is_one_line_and_a_code})
