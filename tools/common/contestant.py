"""Processes that take turns in measurements."""
import atexit
import os
import signal
import subprocess
import time


class Ended(SystemExit):
    """A process ended instead of answering. If nothing catches this, the script ends with its message."""


class Contestant:
    """A process that answers each line of its input with a line. It can be stopped (SIGSTOP) between its turns, as the
    threads of some peers spin after a run.

    `cores`: those it may use (default: all of this process); `environment`: variables beside those of this process;
    `log`: an open file for its standard error (default: that of this process)."""

    def __init__(self, name, command, cores=None, environment=None, log=None):
        cores = cores or os.sched_getaffinity(0)
        self.name, self.isPaused = name, False
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=log, text=True, env={**os.environ, **(environment or {})},
                                        preexec_fn=lambda: os.sched_setaffinity(0, cores))
        atexit.register(self.process.kill)  # a stopped process would outlive this one

    def ask(self, question=""):
        """Returns the answer; raises Ended."""
        self.goOn()
        try:
            self.process.stdin.write(question + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        return self.line()

    def line(self):
        """Returns the next line of output; raises Ended."""
        answer = self.process.stdout.readline()
        if not answer:
            raise Ended(f"{self.name} ended with code {self.process.wait()}")
        return answer.strip()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)
        while self.process.poll() is None and not os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOHANG):
            time.sleep(1e-4)
        self.isPaused = True

    def goOn(self):
        if self.isPaused:
            self.process.send_signal(signal.SIGCONT)
            self.isPaused = False

    def close(self):
        self.goOn()
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def onThreads(count):
    """Returns the arguments `cores` and `environment` for a process with so many threads, each on a core of its own."""
    return {"cores": sorted(os.sched_getaffinity(0))[:count],
            "environment": {name: str(count) for name in ("OMP_NUM_THREADS", "BURIN_NUM_THREADS")}}
