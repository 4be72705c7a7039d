"""tokenize as a user runs it: what it writes, read here byte by byte, and what it says about bad input."""

import json
import os
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile
import unittest

TOKENIZE = pathlib.Path(os.environ["LOCKSTEP_BIN"]) / "tokenize"
USAGE, IO = 2, 3


def read_shard(path):
    """The magic, version and tokens of a shard."""
    data = path.read_bytes()
    magic, version, count = struct.unpack_from("<iiq", data)
    assert not any(data[16:1024]), "the rest of the header is zero"
    width = {20240520: "H", 20240801: "I"}[magic]
    return magic, version, list(struct.unpack(f"<{count}{width}", data[1024:]))


class Tokenize(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.text = self.folder / "text.txt"
        self.out = self.folder / "data" / "set"

    def run_tokenize(self, *flags, locale="C"):
        return subprocess.run([TOKENIZE, "--text", self.text, "--out", self.out, *flags], capture_output=True, text=True,
                              env={**os.environ, "LC_ALL": locale}, check=False)

    def succeed(self, content, *flags, **more):
        self.text.write_bytes(content)
        result = self.run_tokenize(*flags, **more)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def fail(self, code, message, *flags):
        """Expects one line that starts with the program and nothing written."""
        result = self.run_tokenize(*flags)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("tokenize: "), result.stderr)
        self.assertIn(message, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertFalse(self.out.exists())

    def test_characters(self):
        text = "Zwölf 東京 😀\n" * 50
        said = self.succeed(text.encode())
        alphabet = sorted(set(text))
        vocabulary = json.loads((self.out / "vocab.json").read_text(encoding="utf-8"))
        self.assertEqual(vocabulary, {"format": "lockstep-vocabulary", "version": 1, "kind": "char", "symbols": alphabet})
        ids = [alphabet.index(symbol) for symbol in text]
        cut = int(len(text) * 0.9)  # where nanoGPT cuts
        self.assertEqual(read_shard(self.out / "train.bin"), (20240520, 1, ids[:cut]))
        self.assertEqual(read_shard(self.out / "val.bin"), (20240520, 1, ids[cut:]))
        for word in (f"{len(alphabet)} symbols", f"{cut} tokens", f"{len(text) - cut} tokens", str(self.out / "train.bin")):
            self.assertIn(word, said)
        self.assertEqual(sorted(p.name for p in self.out.iterdir()), ["train.bin", "val.bin", "vocab.json"])

    def test_bytes(self):
        content = bytes(range(256)) * 4
        self.succeed(content, "--kind", "byte", "--val-fraction", "0.25")
        self.assertEqual(read_shard(self.out / "train.bin"), (20240520, 1, list(content[:768])))
        self.assertEqual(read_shard(self.out / "val.bin"), (20240520, 1, list(content[768:])))
        self.assertEqual(json.loads((self.out / "vocab.json").read_text())["kind"], "byte")

    def test_pieces_of_a_long_text_fit_together(self):
        # Longer than the pieces in which a text is encoded, with code points across every cut.
        text = "€" * 1_500_000 + "x"
        self.succeed(text.encode())
        tokens = read_shard(self.out / "train.bin")[2] + read_shard(self.out / "val.bin")[2]
        self.assertEqual(tokens, [1] * 1_500_000 + [0])

    def test_more_symbols_than_16_bits_hold(self):
        alphabet = [chr(c) for c in range(0x10000, 0x10000 + 65537)]
        said = self.succeed("".join(alphabet).encode())
        self.assertIn("uint32", said)
        magic, version, tokens = read_shard(self.out / "val.bin")
        self.assertEqual((magic, version, tokens[-1]), (20240801, 7, 65536))

    def test_replaces_an_older_set(self):
        self.succeed(b"abcabc" * 10)
        self.succeed(b"xyz" * 10)
        self.assertEqual(len(read_shard(self.out / "train.bin")[2]), 27)

    def test_decimal_comma_locale(self):
        # Where the locale is not installed this runs in C; tests/unit/base covers the parser itself.
        self.succeed(b"abcd" * 10, "--val-fraction", "0.5", locale="de_DE.UTF-8")
        self.assertEqual(len(read_shard(self.out / "val.bin")[2]), 20)

    def test_missing_text(self):
        self.fail(IO, f"cannot open {self.text}: No such file or directory")

    def test_a_folder_as_text(self):
        self.text.mkdir()
        self.fail(IO, f"{self.text}: it is not a regular file")

    def test_empty_text(self):
        self.text.touch()
        self.fail(USAGE, "the file is empty")

    def test_invalid_utf8(self):
        self.text.write_bytes(b"first line\nsec\xc3\xb6nd \xff line")
        self.fail(USAGE, "not UTF-8 at byte 19 (line 2, column 8): 0xff")

    def test_text_too_short_for_two_splits(self):
        self.text.write_bytes(b"abcdefghij")
        self.fail(USAGE, "10 tokens with --val-fraction 0.1 leave 9 for training and 1 for validation")

    def test_val_fraction_out_of_range(self):
        self.text.write_bytes(b"abc" * 100)
        for value in ("0", "1", "-0.1", "1.5"):
            self.fail(USAGE, f"--val-fraction is {value}; it must be greater than 0 and less than 1", "--val-fraction", value)
        self.fail(USAGE, "--val-fraction expects a number", "--val-fraction", "0,1")

    def test_unknown_kind_and_flag(self):
        self.text.write_bytes(b"abc" * 100)
        self.fail(USAGE, "--kind is 'bpe'; it must be one of char, byte", "--kind", "bpe")
        self.fail(USAGE, "unknown flag --val-fractoin (did you mean --val-fraction?)", "--val-fractoin=0.2")

    def test_out_cannot_be_written(self):
        self.text.write_bytes(b"abc" * 100)
        self.out = self.text / "below"
        self.fail(IO, f"cannot create the folder {self.out}: Not a directory")

    def test_a_disk_that_takes_no_more(self):
        self.text.write_bytes(b"abc" * 100)
        self.run_tokenize()
        before = {path.name: path.read_bytes() for path in self.out.iterdir()}
        self.text.write_bytes(b"abcd" * 1000)
        # A limit on the size of files stands for the full disk; Python has the signal that goes with it ignored.
        result = subprocess.run([TOKENIZE, "--text", self.text, "--out", self.out], capture_output=True, text=True,
                                check=False, restore_signals=False,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)))
        self.assertEqual(result.returncode, IO)
        self.assertIn(f"cannot write {self.out}/train.bin.tmp: File too large", result.stderr)
        self.assertEqual({path.name: path.read_bytes() for path in self.out.iterdir()}, before)


if __name__ == "__main__":
    sys.exit(unittest.main())
