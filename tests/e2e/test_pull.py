"""tern pull, list and rm, against a server on this machine that does what servers do."""
import hashlib
import http.server
import json
import os
import pathlib
import pty
import re
import subprocess
import tempfile
import threading
import unittest

from program import BAD_INPUT, FINE, NO_RESOURCE, PROGRAM, SMALL, WRONG_USE, ProgramTest, path, shown

MODEL = pathlib.Path(path(SMALL)).read_bytes()
BIG = MODEL + bytes(range(256)) * 8192  # 2 MiB behind a header: what follows a model's tensors is nobody's matter
SUM = hashlib.sha256(BIG).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def plain(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        server = self.server
        server.asked.append((self.path, dict(self.headers)))
        answer = server.answers.get(self.path.split("?")[0])
        if answer is None:
            self.plain(404, b"<html>no such page</html>")
        elif callable(answer):
            answer(self)
        else:
            self.file(answer)

    def file(self, content, etag='"v1"', ranges=True, cut=None, **headers):
        """The content, or the part asked for; `cut`: the connection ends after so many bytes of it."""
        begin, status = 0, 200
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if asked and ranges and self.headers.get("If-Range", etag) == etag:
            begin, status = int(asked[1]), 206
        if begin >= len(content) > 0:
            return self.plain(416, Content_Range=f"bytes */{len(content)}")
        self.send_response(status)
        if etag:
            self.send_header("ETag", etag)
        if status == 206:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        self.wfile.write(content[begin:] if cut is None else content[begin : begin + cut])
        if cut is not None:
            self.wfile.flush()
            self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.asked = {}, []
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class HubTest(ProgramTest):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.models = pathlib.Path(folder.name) / "tern" / "models"
        before = {name: os.environ.get(name) for name in ("XDG_CACHE_HOME", "NO_PROXY", "no_proxy")}
        os.environ.update(XDG_CACHE_HOME=folder.name, NO_PROXY="127.0.0.1", no_proxy="127.0.0.1")

        def restore():
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})

        self.addCleanup(restore)

    def pull(self, name, *args):
        return self.ok_json("pull", self.server.url + name, *args)["files"]

    def names(self):
        return sorted(file.name for file in self.models.iterdir()) if self.models.exists() else []

    def not_kept(self):
        self.assertEqual([name for name in self.names() if not name.endswith(".json")], [])


class Pull(HubTest):
    def test_a_file(self):
        self.server.answers["/a/m.gguf"] = BIG
        (file,) = self.pull("/a/m.gguf?download=true")
        self.assertEqual(file, {"path": str(self.models / "m.gguf"), "bytes": len(BIG), "sha256": SUM, "checked": False, "was_there": False, "resumed_from": 0})
        self.assertEqual((self.models / "m.gguf").read_bytes(), BIG)
        self.assertEqual(self.names(), ["m.gguf", "m.gguf.json"])
        # Names stand for paths, with and without their ending; what is there is not fetched again.
        self.assertEqual(self.ok_json("info", "m.gguf")["container"], "gguf")
        for verb in (["run", "-p", "Hi", "-n", 2], ["tokenize", "--text", "Hi"], ["validate"], ["plan"], ["explain"], ["bench", "-p", 2, "-n", 0, "-r", 1]):
            self.ok(verb[0], "m", *verb[1:])
        asked = len(self.server.asked)
        self.assertTrue(self.pull("/a/m.gguf?download=true")[0]["was_there"])
        self.assertEqual(len(self.server.asked), asked)
        # Text: the path alone.
        self.assertEqual(self.ok("pull", self.server.url + "/a/m.gguf?download=true").decode(), str(self.models / "m.gguf") + "\n")

    def test_names(self):
        self.server.answers.update({"/a/m.gguf": BIG, "/b/m.gguf": MODEL, "/c/some%20model.gguf": MODEL, "/m.bin": MODEL})
        self.pull("/a/m.gguf")
        self.refused(WRONG_USE, "pull", self.server.url + "/b/m.gguf", says="another 'm.gguf'.*--name")
        self.assertEqual(self.pull("/b/m.gguf", "--name", "n.gguf")[0]["path"], str(self.models / "n.gguf"))
        self.assertEqual(self.pull("/c/some%20model.gguf")[0]["path"], str(self.models / "some model.gguf"))
        self.refused(WRONG_USE, "pull", self.server.url + "/m.bin", says="no GGUF file by its name")
        self.pull("/m.bin", "--name", "o.gguf")
        for bad in ("../x.gguf", ".x.gguf", "a/b.gguf", "x.bin", "x\n.gguf"):
            self.refused(WRONG_USE, "pull", self.server.url + "/a/m.gguf", "--name", bad)
        self.refused(WRONG_USE, "pull", self.server.url + "/d/..%2F..%2Fx.gguf", says="no name of a file")
        self.refused(WRONG_USE, "pull", self.server.url)
        self.refused(WRONG_USE, "pull", "file:///etc/x.gguf")
        with tempfile.TemporaryDirectory() as other:
            self.assertEqual(self.pull("/a/m.gguf", "--dir", other)[0]["path"], other + "/m.gguf")

    def test_cut_connections_are_taken_up(self):
        cuts = [300000, 500000, 0, None]

        def answer(handler):
            handler.file(BIG, cut=cuts.pop(0))

        self.server.answers["/m.gguf"] = answer
        (file,) = self.pull("/m.gguf")
        self.assertEqual((file["sha256"], cuts), (SUM, []))
        self.assertEqual([headers.get("Range") for _, headers in self.server.asked], [None, "bytes=300000-", "bytes=800000-", "bytes=800000-"])
        self.assertEqual({headers.get("If-Range") for _, headers in self.server.asked[1:]}, {'"v1"'})

    def test_a_later_call_goes_on(self):
        self.server.answers["/m.gguf"] = lambda handler: handler.file(BIG, cut=0 if "Range" in handler.headers else 700000)
        self.refused(BAD_INPUT, "pull", self.server.url + "/m.gguf", "--retries", 0, says="what came is kept")
        self.assertEqual(self.names(), ["m.gguf.part", "m.gguf.part.json"])
        self.assertFalse(self.ok_json("list")["models"][0]["whole"])
        self.refused(BAD_INPUT, "run", "m.gguf", "-p", "Hi")  # half a model is none
        self.server.answers["/m.gguf"] = BIG
        (file,) = self.pull("/m.gguf")
        self.assertEqual((file["resumed_from"], file["sha256"]), (700000, SUM))
        self.assertEqual((self.models / "m.gguf").read_bytes(), BIG)

    def test_what_cannot_go_on_begins_anew(self):
        def begun(content=BIG[::-1], etag='"v1"', bytes=700000):
            self.server.answers["/m.gguf"] = lambda handler: handler.file(content, etag=etag, cut=0 if "Range" in handler.headers else bytes)
            self.refused(BAD_INPUT, "pull", self.server.url + "/m.gguf", "--retries", 0, says="what came is kept")
            self.assertEqual((self.models / "m.gguf.part").stat().st_size, bytes)

        for what, answer in {
            "another file": lambda handler: handler.file(BIG, etag='"v2"'),
            "no ranges": lambda handler: handler.file(BIG, ranges=False),
        }.items():
            with self.subTest(what):
                begun()
                self.server.answers["/m.gguf"] = answer
                (file,) = self.pull("/m.gguf")
                self.assertEqual((file["resumed_from"], file["sha256"]), (0, SUM))
                self.ok("rm", "m.gguf")
        # A weak tag promises nothing.
        begun(etag='W/"v1"')
        self.server.answers["/m.gguf"] = BIG
        self.assertEqual(self.pull("/m.gguf")[0]["sha256"], SUM)
        self.assertNotIn("Range", self.server.asked[-1][1])
        # All had come, only the end was missed.
        self.ok("rm", "m.gguf")
        begun(BIG, bytes=len(BIG) - 5)
        with open(self.models / "m.gguf.part", "ab") as part:
            part.write(BIG[-5:])
        self.server.answers["/m.gguf"] = BIG
        (file,) = self.pull("/m.gguf")
        self.assertEqual((file["sha256"], file["resumed_from"]), (SUM, len(BIG)))

    def test_checksums(self):
        self.server.answers["/m.gguf"] = BIG
        self.refused(BAD_INPUT, "pull", self.server.url + "/m.gguf", "--sha256", "0" * 64, says=f"{SUM}.*nothing is kept")
        self.assertEqual(self.names(), [])
        self.refused(WRONG_USE, "pull", self.server.url + "/m.gguf", "--sha256", "abc", says="no SHA-256")
        self.assertTrue(self.pull("/m.gguf", "--sha256", SUM.upper())[0]["checked"])
        self.refused(BAD_INPUT, "pull", self.server.url + "/m.gguf", "--sha256", "0" * 64, says="is there and has")

        def redirect(linked):
            return lambda handler: handler.plain(302, Location="/cdn/n.gguf", ETag='"of the redirect"', X_Linked_Etag=f'"{linked}"')

        self.server.answers.update({"/cdn/n.gguf": BIG, "/n.gguf": redirect("0" * 64)})
        self.refused(BAD_INPUT, "pull", self.server.url + "/n.gguf", says="wanted is 0000")
        self.server.answers["/n.gguf"] = redirect(SUM)
        self.assertTrue(self.pull("/n.gguf")[0]["checked"])
        self.ok("rm", "n.gguf")
        self.server.answers["/n.gguf"] = redirect("a git hash")
        self.assertFalse(self.pull("/n.gguf")[0]["checked"])

    def test_sums_of_all_lengths(self):
        for n in (0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 128):
            content = MODEL + b"x" * n
            self.server.answers[f"/{n}.gguf"] = content
            self.assertEqual(self.pull(f"/{n}.gguf")[0]["sha256"], hashlib.sha256(content).hexdigest())

    def test_what_servers_refuse(self):
        self.server.answers.update({
            "/forbidden.gguf": lambda handler: handler.plain(403),
            "/moved.gguf": lambda handler: handler.plain(302, Location="/moved.gguf"),
            "/away.gguf": lambda handler: handler.plain(302, Location="file:///etc/passwd"),
            "/page.gguf": b"<html>please log in</html>",
            "/empty.gguf": b"",
            "/busy.gguf": lambda handler: handler.plain(503),
        })
        for name, says in {"none": "answers 404", "forbidden": "answers 403", "moved": "redirect", "away": "cannot be read", "page": "no GGUF file", "empty": "no GGUF file", "busy": "answers 503"}.items():
            with self.subTest(name):
                self.refused(BAD_INPUT, "pull", f"{self.server.url}/{name}.gguf", "--retries", 1, says=says)
                self.not_kept_whole(name)
        times = [503, 429, None]

        def busy(handler):
            status = times.pop(0)
            handler.plain(status) if status else handler.file(BIG)

        self.server.answers["/busy.gguf"] = busy
        self.assertEqual(self.pull("/busy.gguf")[0]["sha256"], SUM)
        self.refused(BAD_INPUT, "pull", "http://127.0.0.1:9/m.gguf", "--retries", 0, says="connection")

    def not_kept_whole(self, name):
        self.assertNotIn(name + ".gguf", self.names())

    def test_a_short_disk(self):
        def huge(handler):
            handler.send_response(200)
            handler.send_header("Content-Length", str(10**17))
            handler.end_headers()
            handler.wfile.write(MODEL)
            handler.close_connection = True

        self.server.answers["/m.gguf"] = huge
        self.refused(NO_RESOURCE, "pull", self.server.url + "/m.gguf", says=f"bytes left and 'm.gguf' needs {10**17}")
        self.assertEqual((self.models / "m.gguf.part").stat().st_size, 0)

    def test_progress_on_a_terminal_only(self):
        self.server.answers["/m.gguf"] = BIG
        master, slave = pty.openpty()
        done = subprocess.run([PROGRAM, "pull", self.server.url + "/m.gguf"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=slave, timeout=60)
        os.close(slave)
        seen = shown(master)
        self.assertEqual(done.returncode, FINE)
        self.assertRegex(seen, r"m\.gguf +\d+%")


class Hub(HubTest):
    def setUp(self):
        super().setUp()
        self.hub = ["--hub", self.server.url + "/"]

    def files(self, *names, model="owner/name"):
        self.server.answers[f"/api/models/{model}"] = json.dumps({"siblings": [{"rfilename": name} for name in names]}).encode()
        for name in names:
            self.server.answers[f"/{model}/resolve/main/{name}"] = MODEL + name.encode()

    def chosen(self, reference):
        files = self.ok_json("pull", reference, *self.hub)["files"]
        return [pathlib.Path(file["path"]).name for file in files]

    def test_a_file_by_name(self):
        self.files("a.gguf", "sub/b.gguf")
        self.server.answers["/owner/name/resolve/v1/c.gguf"] = MODEL
        self.assertEqual(self.chosen("hf:owner/name/a.gguf"), ["a.gguf"])
        self.assertEqual(self.chosen("owner/name/sub/b.gguf"), ["b.gguf"])
        self.ok("pull", "hf:owner/name/c.gguf", "--revision", "v1", *self.hub)
        self.refused(BAD_INPUT, "pull", "hf:owner/name/d.gguf", *self.hub, says="404")

    def test_by_quantisation(self):
        self.files("README.md", "m-Q4_K_M.gguf", "m-Q4_K_S.gguf", "m.q8_0.gguf", "m-Q4_0.gguf", "m-Q4_0_4_4.gguf", "mmproj-F16.gguf", "m-f16.gguf")
        self.assertEqual(self.chosen("owner/name:q8_0"), ["m.q8_0.gguf"])
        self.assertEqual(self.chosen("hf:owner/name:Q4_0"), ["m-Q4_0.gguf"])
        usual = "m-Q4_K_M.gguf" if "q4_k" in self.ok_json("info", "--build")["build"]["formats"] else "m-Q4_0.gguf"
        self.assertEqual(self.chosen("owner/name"), [usual])
        self.assertEqual(self.chosen("owner/name:F16"), ["m-f16.gguf"])
        self.refused(BAD_INPUT, "pull", "owner/name:Q4_K", *self.hub, says="no file of 'Q4_K'; it has: m-Q4_K_M.gguf")
        self.refused(BAD_INPUT, "pull", "owner/other", *self.hub, says="no model 'owner/other'")
        self.files("one.gguf", model="owner/single")
        self.assertEqual(self.chosen("owner/single"), ["one.gguf"])
        self.files("a-Q4_0.gguf", "b-Q4_0.gguf", model="owner/two")
        self.refused(WRONG_USE, "pull", "owner/two", *self.hub, says="several files.*hf:owner/two/FILE")
        self.files("README.md", model="owner/none")
        self.refused(BAD_INPUT, "pull", "owner/none", *self.hub, says="no GGUF files")
        self.server.answers["/api/models/owner/odd"] = b"[]"
        self.refused(BAD_INPUT, "pull", "owner/odd", *self.hub, says="no list of files")
        for bad in ("name", "hf:name", "owner/name:", "owner/name/x:y", "owner//x"):
            self.refused(WRONG_USE, "pull", bad, *self.hub)

    def test_split_models_come_whole(self):
        parts = [f"m-Q8_0-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
        self.files(*parts)
        self.assertEqual(self.chosen("owner/name:q8_0"), parts)
        self.assertEqual(self.chosen("hf:owner/name/" + parts[1]), parts)
        self.refused(WRONG_USE, "pull", "owner/name", "--sha256", SUM, *self.hub, says="split into 3")
        self.ok("rm", parts[1])
        self.assertEqual(self.names(), [])


class Kept(HubTest):
    def test_list_and_rm(self):
        self.assertEqual(self.ok_json("list"), {"folder": str(self.models), "models": []})
        self.server.answers.update({"/a.gguf": BIG, "/b.gguf": MODEL})
        self.pull("/b.gguf")
        self.pull("/a.gguf")
        (self.models / "c.gguf").write_bytes(b"no model")
        listed = self.ok_json("list")["models"]
        self.assertEqual([model["name"] for model in listed], ["a.gguf", "b.gguf", "c.gguf"])
        self.assertEqual(listed[0], {"name": "a.gguf", "path": str(self.models / "a.gguf"), "bytes": len(BIG), "whole": True, "architecture": "llama", "url": self.server.url + "/a.gguf", "sha256": SUM})
        self.assertIsNone(listed[2]["architecture"])
        self.assertRegex(self.ok("list").decode(), r"a\.gguf +2\.0 MiB  llama\nb\.gguf")
        self.refused(BAD_INPUT, "rm", "a.gguf", "d.gguf", says="no model 'd.gguf'")
        self.assertEqual(len(self.ok_json("list")["models"]), 3)  # nothing was removed
        removed = self.ok_json("rm", "a.gguf", "b.gguf")
        self.assertEqual(len(removed["removed"]), 4)
        self.assertGreater(removed["bytes"], len(BIG) + len(MODEL))
        self.assertEqual(self.names(), ["c.gguf"])
        for bad in ("../../x.gguf", "x", ""):
            self.refused(WRONG_USE, "rm", bad)
        self.refused(WRONG_USE, "rm")


if __name__ == "__main__":
    unittest.main()
