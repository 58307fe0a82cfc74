"""A terminal for a command, and the shell that started it there: what a person does at it is told as JSON.

terminal.py '[["see", "ready"], ["type", "\\u001a"], ["stopped"], ["go"], ["end"]]' COMMAND...

  see TEXT    waits until it is on the screen
  type TEXT   types it; \\u0003 is Ctrl-C, \\u001a Ctrl-Z, \\u001c Ctrl-\\
  stopped     waits until the shell has its prompt back, and notes the states of all processes of the terminal
  go          continues the job in the foreground
  end         waits for its end

Prints one JSON object: the screen, the states noted, and how the command ended (a code, or minus a signal).
"""
import json
import os
import pty
import signal
import sys
import time


def shell(told, asked, command):
    """A job in a group of its own, in the foreground; its stops and its end are told, `g` continues it."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
        os.tcsetpgrp(0, os.getpid())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTTOU])
        os.close(told)
        os.close(asked)
        os.execvp(command[0], command)
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        os.tcsetpgrp(0, os.getpgrp())
        if not os.WIFSTOPPED(status):
            os.write(told, f"ended {os.waitstatus_to_exitcode(status)}\n".encode())
            os._exit(0)
        os.write(told, b"stopped\n")
        os.read(asked, 1)
        os.tcsetpgrp(0, job)
        os.killpg(job, signal.SIGCONT)
        os.write(told, b"going\n")


def states(session):
    """Letter of every process of the terminal's session but its shell; others that belong to it are found by its number as parent."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == session and int(name) != session:
            found[int(name)] = fields[0]
    return sorted(found.values())


steps, command = json.loads(sys.argv[1]), sys.argv[2:]
told_read, told_write = os.pipe()
asked_read, asked_write = os.pipe()
pid, terminal = pty.fork()
if pid == 0:
    os.close(told_read)
    os.close(asked_write)
    shell(told_write, asked_read, command)
os.close(told_write)
os.close(asked_read)
screen, noted, ended = b"", [], None


def news():
    return os.read(told_read, 64).decode().split()


for what, *values in steps:
    if what == "see":
        while values[0].encode() not in screen:
            screen += os.read(terminal, 4096)
    elif what == "type":
        os.write(terminal, values[0].encode())
    elif what == "stopped":
        word = news()
        assert word == ["stopped"], word
        # A signal that was sent need not have arrived.
        until = time.monotonic() + 10
        while set(found := states(pid)) != {"T"} and time.monotonic() < until:
            time.sleep(0.02)
        noted.append(found)
    elif what == "go":
        os.write(asked_write, b"g")
        word = news()
        assert word == ["going"], word
    elif what == "end":
        while True:
            try:
                chunk = os.read(terminal, 4096)
            except OSError:
                break
            if not chunk:
                break
            screen += chunk
        ended = int(news()[1])
os.waitpid(pid, 0)
print(json.dumps({"screen": screen.decode(errors="replace"), "noted": noted, "ended": ended}))
