"""launch/slurm.sbatch and launch/quickstart give --resume where there is a checkpoint to go on from, and once. Programs
that they start are stand-ins that note their words."""

import os
import shutil
import signal
import subprocess
import tempfile
import time

from trainer_runs import LIMIT, Failure, expect

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


class Clone:
    """A folder with the scripts and stand-ins; `with Clone() as clone:`."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="lockstep restarts-")
        for folder in ("launch", "configs"):
            shutil.copytree(os.path.join(SOURCE, folder), self.at(folder))
        for name, body in {"launch/setup": "", "bin/ninja": "", "launch/train": self.notes("trained"),
                           "bin/mpirun": self.notes("trained") + 'eval "$STAND_IN"',
                           "bin/scontrol": self.notes("requeued")}.items():
            self.write(name, "#!/usr/bin/env bash\n" + body)
            os.chmod(self.at(name), 0o755)
        self.write("data/kjv/vocab.json", "")
        return self

    def __exit__(self, kind, error, trace):
        shutil.rmtree(self.path)

    def at(self, name):
        return os.path.join(self.path, name)

    def notes(self, name):
        return f'printf "%s\\n" "$@" >"{self.at(name)}"\n'

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.at(name)), exist_ok=True)
        with open(self.at(name), "w") as file:
            file.write(text)

    def noted(self, name):
        with open(self.at(name)) as file:
            return file.read().split("\n")[:-1]

    def start(self, script, *flags, restarts=0, stand_in=""):
        environment = {**os.environ, "PATH": self.at("bin") + ":" + os.environ["PATH"], "STAND_IN": stand_in,
                       "SLURM_SUBMIT_DIR": self.path, "SLURM_RESTART_COUNT": str(restarts), "SLURM_JOB_ID": "17"}
        return subprocess.Popen(["bash", self.at("launch/" + script), *flags], env=environment, cwd="/", text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def resumes(self, *command, **options):
        """How often --resume reaches the trainer."""
        process = self.start(*command, **options)
        _, said = process.communicate(timeout=LIMIT)
        expect(process.returncode == 0, f"{command}: code {process.returncode}\n{said}")
        words = self.noted("trained")
        expect(words[len(words) - len(command) + 1:] == list(command[1:]), f"{command}: flags in {words}")
        return words.count("--resume")


def expect_resumes(clone, expected, *command, **options):
    found = clone.resumes(*command, **options)
    expect(found == expected, f"{command} {options}: --resume {found} times, not {expected}")


def slurm(clone):
    expect_resumes(clone, 0, "slurm.sbatch")
    expect_resumes(clone, 0, "slurm.sbatch", restarts=1)  # it ended before its first checkpoint
    clone.write("out/step_00000009.old/manifest.rec", "")
    expect_resumes(clone, 0, "slurm.sbatch", restarts=1)
    clone.write("out/step_00000010/manifest.rec", "")
    expect_resumes(clone, 0, "slurm.sbatch")  # that it would be overwritten is the trainer's to say
    expect_resumes(clone, 1, "slurm.sbatch", restarts=1)
    expect_resumes(clone, 1, "slurm.sbatch", "--resume", restarts=1)
    expect_resumes(clone, 0, "slurm.sbatch", "--no-resume", restarts=1)
    expect_resumes(clone, 0, "slurm.sbatch", "--out-dir", "my other", restarts=1)
    expect_resumes(clone, 0, "slurm.sbatch", "--out-dir=my other", restarts=1)
    clone.write("my other/step_100000000/manifest.rec", "")
    expect_resumes(clone, 1, "slurm.sbatch", "--out-dir", "my other", "--seed", "2", restarts=1)
    expect_resumes(clone, 1, "slurm.sbatch", "--out-dir=my other", "--seed", "2", restarts=2)


def slurm_by_configuration(clone):
    clone.write("elsewhere/step_00000010/manifest.rec", "")
    for line in ('out-dir = "elsewhere"', "\tout_dir='elsewhere' # there", "out-dir = elsewhere"):
        clone.write("run.toml", f"[Files]\n# out-dir = \"nowhere\"\n{line}\n")
        expect_resumes(clone, 1, "slurm.sbatch", "--config", "run.toml", restarts=1)
        expect_resumes(clone, 1, "slurm.sbatch", "--config=run.toml", restarts=1)
        expect_resumes(clone, 0, "slurm.sbatch", "--config", "run.toml", "--out-dir", "nowhere", restarts=1)


def slurm_is_queued_again(clone):
    """Of a signal before the time is over, which Slurm sends to the script alone, the ranks hear."""
    process = clone.start("slurm.sbatch", stand_in='trap "exit 75" USR1; touch ready; while true; do sleep 0.1; done')
    end = time.monotonic() + LIMIT
    while not os.path.exists(clone.at("ready")):
        expect(time.monotonic() < end, "mpirun was not started")
        time.sleep(0.02)
    process.send_signal(signal.SIGUSR1)
    expect(process.wait(timeout=LIMIT) == 75, f"code {process.returncode}")
    expect(clone.noted("requeued") == ["requeue", "17"], f"scontrol {clone.noted('requeued')}")


def quickstart(clone):
    expect_resumes(clone, 0, "quickstart")
    clone.write("out/quickstart/step_00001000/manifest.rec", "")
    expect_resumes(clone, 1, "quickstart")
    expect_resumes(clone, 1, "quickstart", "--resume")
    expect_resumes(clone, 0, "quickstart", "--out-dir", "out/other")


def main():
    failed = False
    for case in (slurm, slurm_by_configuration, slurm_is_queued_again, quickstart):
        try:
            with Clone() as clone:
                case(clone)
            print(f"ok   {case.__name__}", flush=True)
        except (Failure, subprocess.SubprocessError) as error:
            failed = True
            print(f"FAIL {case.__name__}: {error}", flush=True)
    return failed


raise SystemExit(main())
