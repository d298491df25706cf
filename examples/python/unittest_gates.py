"""The same without pytest: LLMBENCH_URL=http://127.0.0.1:8000 python3 -m unittest unittest_gates"""
import json
import pathlib
import subprocess
import unittest

import llmbench

FILE = pathlib.Path(__file__).with_name("gates.toml")


class Gates(unittest.TestCase):
    def test_gates(self):
        told = subprocess.run([llmbench.path(), "explain", FILE, "--json"], check=True, capture_output=True).stdout
        for gate in json.loads(told)["gates"]:
            with self.subTest(gate["name"]):
                code = subprocess.call([llmbench.path(), "run", "--config", FILE, "--gate", gate["name"]])
                if code == 77:
                    self.skipTest("no verdict was asked for")
                self.assertEqual(code, 0, "1: missed, 2: refused, 3: invalid")
