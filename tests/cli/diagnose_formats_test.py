"""The documents of `bench diagnose` as their readers take them: JUnit's XML by Python's parser, GitLab's
Code Quality report by the fields that GitLab's documentation lists, with hostile names and texts in them.
Usage: diagnose_formats_test.py BENCH"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

BENCH = ""
WRAP = "model = torch.nn.DataParallel(net, device_ids=[0, 1])\n"
HOSTILE = 'a&b <c> "d" \'e\' \x01\x1b[31m \udcff ]]>.py'  # \udcff: a byte that is not UTF-8


def diagnose(folder, *arguments):
    answer = subprocess.run([BENCH, "diagnose", *arguments], cwd=folder, capture_output=True)
    return answer.returncode, answer.stdout


class Formats(unittest.TestCase):
    def setUp(self):
        self.here = tempfile.TemporaryDirectory()
        self.addCleanup(self.here.cleanup)
        for folder in ("src", ".git"):
            os.mkdir(os.path.join(self.here.name, folder))
        self.write("src/train.py", "import torch\n" + WRAP + WRAP)

    def write(self, name, text):
        with open(os.path.join(self.here.name, name), "w", encoding="utf-8", errors="surrogateescape") as f:
            f.write(text)

    def junit(self, *arguments):
        code, out = diagnose(self.here.name, "--format", "junit", *arguments)
        root = ElementTree.fromstring(out)
        self.assertEqual(root.tag, "testsuites")
        totals = {key: 0 for key in ("tests", "failures", "errors", "skipped")}
        for suite in root:
            self.assertEqual(suite.tag, "testsuite")
            kinds = [child.tag for case in suite for child in case]
            self.assertEqual(int(suite.get("tests")), len(suite))
            for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
                self.assertEqual(int(suite.get(key)), kinds.count(tag))
            for key in totals:
                totals[key] += int(suite.get(key))
        self.assertEqual(totals, {key: int(root.get(key)) for key in totals})
        return code, root

    def test_junit_has_a_suite_for_each_file_and_a_case_for_each_finding(self):
        self.write("src/other.py", "import torch\n" + WRAP)
        code, root = self.junit("src", "--select", "DP001,DP017")
        self.assertEqual(code, 1)
        self.assertEqual([suite.get("name") for suite in root], ["src/other.py", "src/train.py"])
        self.assertEqual([len(suite) for suite in root], [2, 4])
        self.assertEqual((root.get("failures"), root.get("skipped")), ("3", "3"))
        case = root[1][1]
        self.assertEqual(case.get("name"), "bench.diagnose.DP017")
        self.assertEqual(case.get("classname"), "src/train")
        self.assertEqual(case.get("line"), "2")
        self.assertIn("list of 2 devices", case[0].get("message"))
        self.assertTrue(case[0].text.startswith("line 2, col "))

    def test_junit_of_a_clean_run_has_one_case_that_passes(self):
        self.write("clean.py", "import torch\n")
        code, root = self.junit("clean.py")
        self.assertEqual(code, 0)
        self.assertEqual([len(case) for suite in root for case in suite], [0])

    def test_junit_counts_a_file_that_could_not_be_checked_as_an_error(self):
        self.write("cut.ipynb", "{")
        code, root = self.junit("cut.ipynb")
        self.assertEqual((code, root.get("errors")), (2, "1"))

    def test_hostile_names_stay_text(self):
        self.write("src/" + HOSTILE, "import torch\n" + WRAP)
        _, root = self.junit("src", "--select", "DP017")
        name = root[0].get("name")
        self.assertTrue(name.startswith("src/a&b <c> \"d\" 'e' ??[31m "), name)
        self.assertTrue(name.endswith(" ]]>.py"), name)
        _, out = diagnose(self.here.name, "src", "--format", "gitlab")
        self.assertTrue(any("a&b <c>" in issue["location"]["path"] for issue in json.loads(out)))

    def test_gitlab_has_the_fields_of_its_documentation(self):
        # https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
        for folder, path in ((".", "src"), ("src", "train.py")):
            _, out = diagnose(os.path.join(self.here.name, folder), path, "--format", "gitlab")
            issues = json.loads(out)
            self.assertEqual(len(issues), 4)
            for issue in issues:
                self.assertEqual(set(issue), {"description", "check_name", "fingerprint", "severity", "location"})
                self.assertIn(issue["severity"], {"info", "minor", "major", "critical", "blocker"})
                self.assertEqual(issue["location"]["path"], "src/train.py")  # from the repository's root
                self.assertIsInstance(issue["location"]["lines"]["begin"], int)
                self.assertTrue(issue["description"] and issue["check_name"])
            self.assertEqual(len({issue["fingerprint"] for issue in issues}), 4)

    def test_gitlab_of_a_clean_run_is_an_empty_list(self):
        self.write("clean.py", "import torch\n")
        self.assertEqual(diagnose(self.here.name, "clean.py", "--format", "gitlab"), (0, b"[]\n"))

    def test_fingerprints_are_the_same_in_json_sarif_and_gitlab(self):
        _, out = diagnose(self.here.name, "src", "--format", "json")
        prints = [finding["fingerprint"] for finding in json.loads(out)["findings"]]
        _, out = diagnose(self.here.name, "src", "--format", "gitlab")
        self.assertEqual(prints, [issue["fingerprint"] for issue in json.loads(out)])
        _, out = diagnose(self.here.name, "src", "--format", "sarif")
        results = json.loads(out)["runs"][0]["results"]
        self.assertEqual(prints, [result["partialFingerprints"]["primaryLocationLineHash"] for result in results])


if __name__ == "__main__":
    BENCH = os.path.abspath(sys.argv.pop(1))
    unittest.main()
