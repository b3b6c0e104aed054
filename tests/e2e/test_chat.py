"""tern chat, through a pipe and on a terminal."""
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import tempfile
import termios
import time
import unittest

from chatmodel import make
from program import BAD_INPUT, FINE, NO_RESOURCE, PROGRAM, SMALL, WRONG_USE, ProgramTest, path

GREEDY = ["--temp", "0"]
HOT = ["--temp", "5", "--top-k", "0", "--top-p", "1", "--min-p", "0"]


class ChatTest(ProgramTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.model = make(self.folder.name)

    def file(self, name):
        return str(pathlib.Path(self.folder.name) / name)

    def say(self, *lines, args=(), model=None):
        """The answers to the lines, in JSON."""
        out = self.ok("chat", model or self.model, "-n", 6, "--json", *args, stdin="".join(line + "\n" for line in lines).encode())
        return [json.loads(line) for line in out.splitlines()]


class Pipe(ChatTest):
    def test_only_what_is_new_is_read(self):
        first, second = self.say("Hi", "Why", args=GREEDY)
        # Template, BOS: "<s>u:Hi\na:" and then also the answer, "\nu:Why\na:".
        self.assertEqual((first["prompt_tokens"], first["reused_tokens"]), (1 + len("u:Hi\na:"), 0))
        self.assertGreaterEqual(second["reused_tokens"], first["prompt_tokens"])
        self.assertLess(second["reused_tokens"], second["prompt_tokens"])
        # What was kept changes nothing: a program that reads all of it anew says the same.
        self.say("Hi", "/save " + self.file("talk"), args=GREEDY)
        anew = self.say("/load " + self.file("talk"), "Why", args=GREEDY)
        self.assertEqual(anew[0]["reused_tokens"], 0)
        self.assertEqual(anew[0]["text"], second["text"])

    def test_text(self):
        told = self.say("Hi", "Why", args=GREEDY)
        shown = self.ok("chat", self.model, "-n", 6, *GREEDY, stdin=b"Hi\nWhy")  # the last line has no end
        self.assertEqual(shown.decode(), "".join(answer["text"] + "\n" for answer in told))

    def test_system_and_reset(self):
        plain = self.say("Hi", args=GREEDY)[0]
        told = self.say("Hi", "/reset", "Hi", "", "  ", args=[*GREEDY, "--system", "Be brief"])
        self.assertEqual(told[0]["prompt_tokens"], plain["prompt_tokens"] + len("s:Be brief\n"))
        self.assertEqual(told[0]["text"], told[1]["text"])
        self.assertEqual(len(told), 2)

    def test_regen(self):
        first, again, third = self.say("Hi", "/regen", "/regen", args=[*HOT, "--seed", 3])
        self.assertEqual(len({first["text"], again["text"], third["text"]}), 3)
        self.assertEqual(again["reused_tokens"], again["prompt_tokens"] - 1)
        self.assertEqual(again["text"], self.say("Hi", args=[*HOT, "--seed", 4])[0]["text"])
        greedy = self.say("Hi", "/regen", args=GREEDY)
        self.assertEqual(greedy[0]["text"], greedy[1]["text"])

    def test_save_and_load(self):
        answer = self.say("Hi", "/save " + self.file("talk one.json"), args=[*GREEDY, "--system", "S"])[0]
        saved = json.loads(pathlib.Path(self.file("talk one.json")).read_text())
        self.assertEqual(saved, {"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": answer["text"]}]})
        for wrong in ("", "[]", "{", '{"messages": 3}', '{"messages": [{"role": "user"}]}', '{"messages": [{"role": "king", "content": "x"}]}'):
            with self.subTest(wrong):
                pathlib.Path(self.file("bad")).write_text(wrong)
                self.refused(BAD_INPUT, "chat", self.model, stdin=f"/load {self.file('bad')}\n".encode(), says="is no conversation")
        self.refused(BAD_INPUT, "chat", self.model, stdin=b"/load /there/is/no/such/file\n")
        self.refused(BAD_INPUT, "chat", self.model, stdin=b"/save /there/is/no/such/folder/file\n", says="cannot be written")

    def test_commands(self):
        self.assertIn(b"/regen", self.ok("chat", self.model, stdin=b"/help\n"))
        self.assertEqual(self.ok("chat", self.model, stdin=b"/quit\nHi\n"), b"")
        self.assertEqual(self.ok("chat", self.model, stdin=b""), b"")
        self.refused(WRONG_USE, "chat", self.model, stdin=b"/abacus\n", says="/help")
        self.refused(WRONG_USE, "chat", self.model, stdin=b"/regen\n")
        self.refused(WRONG_USE, "chat", self.model, stdin=b"/save\n")
        escaped = self.say("//x", args=GREEDY)[0]
        self.assertEqual(escaped["prompt_tokens"], 1 + len("u:/x\na:"))

    def test_what_cannot_talk(self):
        self.refused(BAD_INPUT, "chat", path(SMALL), stdin=b"Hi\n", says="no chat template")
        self.refused(BAD_INPUT, "chat", path("model_chat_syntax.gguf"), stdin=b"Hi\n", says="chat template")
        self.refused(BAD_INPUT, "chat", path("model_chat_class_escape.gguf"), stdin=b"Hi\n", says="chat template")
        self.refused(WRONG_USE, "chat", self.model, "--temp", -1)
        self.refused(NO_RESOURCE, "chat", self.model, "--device", "abacus")

    def test_a_full_context(self):
        self.refused(BAD_INPUT, "chat", self.model, "--ctx", 32, stdin=b"x" * 40 + b"\n", says="32.*/reset")
        done = subprocess.run([PROGRAM, "chat", self.model, "--ctx", "32", "--temp", "0", "--json"], input=b"Hi\n", capture_output=True, timeout=120)
        answer = json.loads(done.stdout)
        self.assertEqual((answer["stop"], answer["prompt_tokens"] + answer["tokens"]), ("context_full", 33))

    def test_interrupt_stops_the_answer(self):
        model = make(self.folder.name, context=1 << 20)
        child = subprocess.Popen([PROGRAM, "chat", model, "--ctx", str(1 << 20), *GREEDY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2):
            child.stdin.write(b"Hi\n")
            child.stdin.flush()
            self.assertNotEqual(child.stdout.read(4), b"")
            child.send_signal(signal.SIGINT)
            rest = b""
            while not rest.endswith(b"\n"):  # the answer ends with a line
                rest = child.stdout.read(1)
        child.stdin.close()
        self.assertEqual((child.wait(60), child.stderr.read()), (FINE, b""))
        child.stdout.close()
        child.stderr.close()


class Terminal:
    """The program on a terminal of its own."""

    def __init__(self, *args, state):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(XDG_STATE_HOME=state, TERM="xterm", LC_ALL="C.UTF-8")
            os.execv(PROGRAM, [PROGRAM, *map(str, args)])
        self.shown = ""

    def type(self, keys):
        os.write(self.fd, keys if isinstance(keys, bytes) else keys.encode())

    def until(self, pattern, seconds=60):
        """What is shown up to and with the pattern."""
        end = time.monotonic() + seconds
        while True:
            found = re.search(pattern, self.shown, re.S)
            if found:
                seen, self.shown = self.shown[: found.end()], self.shown[found.end() :]
                return seen
            if time.monotonic() > end or not select.select([self.fd], [], [], end - time.monotonic())[0]:
                raise AssertionError(f"{pattern!r} does not show in {self.shown!r}")
            try:
                self.shown += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                raise AssertionError(f"the program ended before {pattern!r} showed: {self.shown!r}") from None

    def edits(self):
        """Whether the program reads keys as they are typed."""
        return not termios.tcgetattr(self.fd)[3] & termios.ICANON

    def close(self):
        """The exit code, once it ends by itself."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    os.read(self.fd, 65536)
                except OSError:
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)
        raise AssertionError("the program does not end")


class OnATerminal(ChatTest):
    def start(self, *args, model=None):
        terminal = Terminal("chat", model or self.model, *args, state=self.folder.name)
        terminal.until(r"/help.*> ")
        return terminal

    def saved(self):
        return json.loads(pathlib.Path(self.file("talk")).read_text())["messages"]

    def test_editing_and_history(self):
        terminal = self.start("-n", 4, *GREEDY)
        # "Hi", typed as "HXi" with the cursor sent back: one left, one character removed.
        terminal.type("HXi\x1b[D\x7f\r")
        terminal.until(r"\n[^\n]*\n.*> ")
        terminal.type("é∑\r")
        terminal.until(r"\n[^\n]*\n.*> ")
        terminal.type("\x1b[A\x1b[A\r")  # two lines up in the history
        terminal.until(r"\n[^\n]*\n.*> ")
        terminal.type(f"/save {self.file('talk')}\r")
        terminal.until("> ")
        terminal.type("/abacus\r")
        terminal.until("tern: there is no command.*> ")
        terminal.type("\x04")
        self.assertEqual(terminal.close(), FINE)
        self.assertEqual([m["content"] for m in self.saved() if m["role"] == "user"], ["Hi", "é∑", "Hi"])
        # The next chat knows the lines of this one.
        self.assertEqual(os.stat(self.file("tern/chat_history")).st_mode & 0o777, 0o600)
        terminal = self.start("-n", 4, *GREEDY)
        terminal.type("\x1b[A\x1b[A\x1b[A\r")
        terminal.until(r"\n[^\n]*\n.*> ")
        terminal.type(f"/save {self.file('talk')}\r/quit\r")
        self.assertEqual(terminal.close(), FINE)
        self.assertEqual(self.saved()[0]["content"], "Hi")

    def test_what_is_typed_at_a_prompt_is_edited(self):
        for _ in range(8):
            terminal = self.start("-n", 1)
            self.assertTrue(terminal.edits(), "the prompt shows before the editor reads")
            terminal.type("\x04")
            self.assertEqual(terminal.close(), FINE)

    def test_no_history(self):
        terminal = self.start("-n", 4, "--no-history")
        terminal.type("Hi\r")
        terminal.until(r"\n[^\n]*\n.*> ")
        terminal.type("/quit\r")
        self.assertEqual(terminal.close(), FINE)
        self.assertFalse(os.path.exists(self.file("tern/chat_history")))

    def test_interrupts(self):
        terminal = self.start("--ctx", 1 << 20, *GREEDY, model=make(self.folder.name, context=1 << 20))
        terminal.type("Hi\r")
        terminal.until(r"\n.{20}")  # an answer without end
        terminal.type("\x03")
        terminal.until("\n> ")
        terminal.type("half a line\x03")
        terminal.until("once more leaves.*> ")
        terminal.type(f"/save {self.file('talk')}\r")
        terminal.until("> ")
        # The half line is gone, the answer is kept as far as it came.
        self.assertEqual([m["role"] for m in self.saved()], ["user", "assistant"])
        self.assertGreater(len(self.saved()[1]["content"]), 9)
        terminal.type("\x03")
        terminal.until("once more leaves.*> ")
        terminal.type("\x03")
        self.assertEqual(terminal.close(), FINE)


if __name__ == "__main__":
    unittest.main()
